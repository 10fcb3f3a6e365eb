// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// authority is the cluster's own certificate authority. It writes what it
// issues into dir as NAME.crt and NAME.key; its own are ca.crt and ca.key.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
	next int64 // serial number
}

func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir, next: 1}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := a.template("rondo test cluster", nil)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.key = key
	return a, a.write("ca", der, key)
}

// issue writes a certificate that serves as client (user, groups) and as
// server (hosts: addresses or names).
func (a *authority) issue(name, user string, groups []string, hosts ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := a.template(user, groups)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return a.write(name, der, key)
}

func (a *authority) template(user string, groups []string) *x509.Certificate {
	a.next++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.next),
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
	}
}

func (a *authority) write(name string, cert []byte, key crypto.Signer) error {
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for suffix, block := range map[string]*pem.Block{
		".crt": {Type: "CERTIFICATE", Bytes: cert},
		".key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(a.path(name+suffix), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (a *authority) path(file string) string { return filepath.Join(a.dir, file) }

// kubeconfig writes a file for the user of certificate name. It holds all that
// it needs, so that it can be used from anywhere.
func (a *authority) kubeconfig(name, path string) error {
	var data [3][]byte
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		var err error
		if data[i], err = os.ReadFile(a.path(file)); err != nil {
			return err
		}
	}
	config := api.NewConfig()
	config.Clusters["rondo"] = &api.Cluster{
		Server:                   fmt.Sprintf("https://%s", address),
		CertificateAuthorityData: data[0],
	}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: data[1], ClientKeyData: data[2]}
	config.Contexts["rondo"] = &api.Context{Cluster: "rondo", AuthInfo: name}
	config.CurrentContext = "rondo"
	return clientcmd.WriteToFile(*config, path)
}
