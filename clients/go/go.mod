module example.org/rankduel/clients/go

go 1.19
