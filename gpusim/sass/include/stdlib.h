// What only host code needs from here is not there: host code is not compiled.
