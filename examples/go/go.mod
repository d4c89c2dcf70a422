module featurewatch.example/changes

go 1.21
