"""Reports: a report dictionary (`Analysis.to_dict()`) as terminal text, JSON and one HTML page."""
