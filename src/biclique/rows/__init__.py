"""Where rows come from: draw, sum, map."""
