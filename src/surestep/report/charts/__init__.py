"""Pictures of a page: inline SVG, made from numbers and words that are given."""
