// An OCI registry in memory on a free port of 127.0.0.1, which it prints. REGISTRY_AUTH is empty, `basic` or `bearer`;
// the login is the user `user` with REGISTRY_PASSWORD.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	address := listener.Addr().String()
	fmt.Println(address)
	content := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	log.Fatal(http.Serve(listener, guarded(content, address, os.Getenv("REGISTRY_AUTH"), os.Getenv("REGISTRY_PASSWORD"))))
}

// guarded requires a login, by Basic or by a token for which a login is exchanged.
func guarded(content http.Handler, address, auth, password string) http.Handler {
	if auth == "" {
		return content
	}
	token := "token-of-" + password
	challenge := `Basic realm="registry"`
	if auth == "bearer" {
		challenge = fmt.Sprintf(`Bearer realm="http://%s/token",service="registry"`, address)
	}
	loggedIn := func(request *http.Request) bool {
		user, given, ok := request.BasicAuth()
		return ok && user == "user" && given == password
	}
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		switch {
		case auth == "bearer" && request.URL.Path == "/token" && loggedIn(request):
			json.NewEncoder(response).Encode(map[string]string{"token": token})
		case auth == "bearer" && request.Header.Get("Authorization") == "Bearer "+token:
			content.ServeHTTP(response, request)
		case auth == "basic" && loggedIn(request):
			content.ServeHTTP(response, request)
		default:
			response.Header().Set("WWW-Authenticate", challenge)
			response.WriteHeader(http.StatusUnauthorized)
		}
	})
}
