// The compiler knows what is declared here.
