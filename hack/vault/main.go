// Vault's core with its kv engine and three logins, in memory: what DeclaREST's tests need of `vault server`.
// It takes the same configuration (in JSON) and, like a new Vault, waits to be initialised and unsealed.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"

	hclog "github.com/hashicorp/go-hclog"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/credential/userpass"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

var engines = map[string]logical.Factory{"kv": kv.Factory}
var logins = map[string]logical.Factory{"userpass": userpass.Factory, "approle": approle.Factory}

// registry names the engines and logins that are compiled in.
type registry map[consts.PluginType]map[string]logical.Factory

func (r registry) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	factory, ok := r[kind][name]
	return func() (any, error) { return factory, nil }, ok
}

func (r registry) Keys(kind consts.PluginType) (names []string) {
	for name := range r[kind] {
		names = append(names, name)
	}
	return names
}

func (r registry) Contains(name string, kind consts.PluginType) bool { return r[kind][name] != nil }

func (r registry) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, r.Contains(name, kind)
}

func (r registry) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	if len(os.Args) != 3 || os.Args[1] != "server" || !strings.HasPrefix(os.Args[2], "-config=") {
		log.Fatal("usage: vault server -config=FILE.json")
	}
	text, err := os.ReadFile(strings.TrimPrefix(os.Args[2], "-config="))
	check(err)
	var config struct {
		Listener struct {
			TCP struct {
				Address string
				Cert    string `json:"tls_cert_file"`
				Key     string `json:"tls_key_file"`
			}
		}
	}
	check(json.Unmarshal(text, &config))
	logger := hclog.New(&hclog.LoggerOptions{Name: "vault", Level: hclog.Info})
	storage, err := inmem.NewInmem(nil, logger)
	check(err)
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical: storage, Logger: logger, DisableMlock: true, LogicalBackends: engines, CredentialBackends: logins,
		BuiltinRegistry: registry{consts.PluginTypeSecrets: engines, consts.PluginTypeCredential: logins},
	})
	check(err)
	handler := vaulthttp.Handler.Handler(
		&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}})
	if tcp := config.Listener.TCP; tcp.Cert != "" {
		check(http.ListenAndServeTLS(tcp.Address, tcp.Cert, tcp.Key, handler))
	} else {
		check(http.ListenAndServe(tcp.Address, handler))
	}
}
