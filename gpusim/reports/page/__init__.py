"""One self-contained HTML page about kernels. Jinja2, the extra `report`, is imported when used."""
