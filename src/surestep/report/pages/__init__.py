"""The sections of the report, a file each, and the page of an inspection."""
