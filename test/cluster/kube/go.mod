// Not built from here: test/cluster/build makes the full go.mod, one for each
// version of Kubernetes. This one keeps the folder out of the tests' module.
module kube

go 1.26.0
