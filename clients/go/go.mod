module rankduel

go 1.19
