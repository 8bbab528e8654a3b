"""RESULTS: what an improvement leaves behind, to be deployed, judged, read and made again."""
