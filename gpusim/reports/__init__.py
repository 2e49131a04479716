"""Reports of results: tables for a terminal, drawings of lanes, plain data for JSON, pages."""
