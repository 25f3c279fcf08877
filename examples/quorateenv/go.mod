module quorateenv

go 1.21
