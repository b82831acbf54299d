# `make` without a target prints the targets. Each target runs one or two commands that can also be run by hand.

KUBECTL ?= kubectl
OPERATOR_IMAGE ?= declarest-operator
OPERATOR_IMAGE_TAG ?= latest
# Such as sha256:4f53..., to pin the image of manifests.
OPERATOR_IMAGE_DIGEST ?=
CONTAINER_ENGINE ?= $(shell command -v podman >/dev/null && echo podman || echo docker)
# Additional arguments of `demo` and `operator-run`, such as `make demo ARGS=--keep`.
ARGS ?=

IMAGE = $(OPERATOR_IMAGE):$(OPERATOR_IMAGE_TAG)$(OPERATOR_IMAGE_DIGEST:%=@%)
# The target directory of cargo: CARGO_TARGET_DIR, its configuration, or target/.
TARGET_DIR = $(shell cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
# Tests that need real servers, so plain `cargo test` does not run them.
REAL_TESTS = real real_proxy vault
# Modules of the tests `real` that `make test-real` runs. `make test-cluster` runs the others.
REAL_MODULES = registry secret_store
# Tests that need the products of bundles/, so plain `cargo test` does not run them.
PRODUCT_TESTS = products
# Comments after `##` are the help text.
HELP = awk -F ':.*\#\# ' '/^[a-z-]+:.*\#\# / { printf "  %-20s %s\n", $$1, $$2 }'

.DEFAULT_GOAL := help
.PHONY: help
help:
	@echo 'Targets:'
	@$(HELP) $(MAKEFILE_LIST)

##@ Try and test

.PHONY: demo
demo: build ## Demonstrate the operator in a minute, without a cluster (ARGS=--keep: leave it running)
	"$(TARGET_DIR)/debug/examples/demo" $(ARGS)

.PHONY: test
test: ## Run all tests that do not need a cluster
	env -u KUBEBUILDER_ASSETS cargo test --workspace

# Each process of tests has a control plane of its own, and all wait most of the time.
.PHONY: test-cluster
test-cluster: build ## Run the tests on a real kube-apiserver and sshd (needs Go and openssh-server)
	assets=$$(hack/envtest/build.sh) && helm=$$(hack/helm/build.sh) && \
	cargo test --workspace --test conformance --test operator --test real --no-run && \
	export KUBEBUILDER_ASSETS=$$assets HELM=$$helm && \
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target \
		test-cluster-operator test-cluster-install test-cluster-others

.PHONY: test-cluster-operator
test-cluster-operator:
	cargo test --workspace --test operator

.PHONY: test-cluster-install
test-cluster-install:
	cargo test --workspace --test real -- install::

.PHONY: test-cluster-others
test-cluster-others:
	cargo test --workspace --test conformance
	modules=$$(cargo test --workspace --quiet --test real -- --list | sed -n 's/::.*: test$$//p' | sort -u) && \
	for module in $$modules; do \
		case " install $(REAL_MODULES) " in *" $$module "*) continue ;; esac; \
		cargo test --workspace --test real -- "$$module::" || exit 1; \
	done

.PHONY: test-real
test-real: ## Run the tests against a real Vault, registry and tinyproxy (needs Go, and tinyproxy)
	vault=$$(hack/vault/build.sh) && registry=$$(hack/registry/build.sh) && \
	export VAULT_BIN=$$vault REGISTRY_BIN=$$registry && \
	cargo test --workspace --test real_proxy --test vault && \
	env -u KUBEBUILDER_ASSETS cargo test --workspace --test real -- $(REAL_MODULES:%=%::)

.PHONY: test-root
test-root: ## Run the tests that need root: limits of memory, a full disk, and the operator in its image
	NEEDS_ROOT=1 cargo test --workspace --test operator -- limits:: full_disk::
	$(MAKE) verify-image

# Fewer at once than other tests: each but those of Keycloak, which take turns, starts a product. They print the requests
# and seconds of docs/performance.md.
.PHONY: test-products
test-products: build ## Run bundles on the real products (needs Go or VAULT_BIN, Maven or KEYCLOAK_HOME, and the packages of .ci/packages)
	vault=$$(hack/vault/build.sh) && keycloak=$$(hack/keycloak.sh) && \
	RUST_TEST_THREADS=4 VAULT_BIN=$$vault KEYCLOAK_HOME=$$keycloak \
	cargo test --workspace $(PRODUCT_TESTS:%=--test %) -- --show-output

.PHONY: test-products-large
test-products-large: build ## Measure the first and the settled run of 500 clients in Keycloak
	keycloak=$$(hack/keycloak.sh) && KEYCLOAK_HOME=$$keycloak \
	cargo test --workspace $(PRODUCT_TESTS:%=--test %) -- --ignored --nocapture five_hundred

.PHONY: vault
vault: ## Build a small Vault once into the cache and print its path
	@hack/vault/build.sh

.PHONY: envtest
envtest: ## Build kube-apiserver, etcd and kubectl once into the cache and print their directory
	@hack/envtest/build.sh

# Builds the whole workspace with the features of its tests, so that `make test` does not build it again.
.PHONY: build
build: ## Build all programs for development
	cargo build --workspace --bins --examples

.PHONY: bench
bench: ## Measure syncs against their targets, all or some rows (ROWS="a b"); needs Go; see docs/performance.md
	vault=$$(hack/vault/build.sh) && \
	env -u KUBEBUILDER_ASSETS VAULT_BIN=$$vault cargo bench -p declarest-operator --bench sync -- $(ROWS)
	$(if $(ROWS),,$(MAKE) bench-memory)

.PHONY: bench-memory
bench-memory: ## Measure rows f, i and j on a real kube-apiserver
	assets=$$(hack/envtest/build.sh) && \
	KUBEBUILDER_ASSETS=$$assets cargo bench -p declarest-operator --bench sync -- f i j

.PHONY: bench-core
bench-core: ## Measure planning, and listing and classifying trees of 100,000 resources, in release mode
	cargo bench -p declarest-core --bench plan --bench tree

.PHONY: bench-cli
bench-cli: ## Measure commands of declarest against their targets, all or some (ROWS="version diff"), in release mode
	cargo bench -p declarest-cli --bench commands -- $(ROWS)

# CHAOS_SEEDS runs for each fault, each with about CHAOS_RESOURCES resources, and CHAOS_KILLS kills.
CHAOS_SEEDS ?= 20
CHAOS_RESOURCES ?= 100
CHAOS_KILLS ?= 100

.PHONY: chaos
chaos: ## Inject faults into syncs, kill the operator, and print the results; see docs/reliability-tests.md
	@table=$$(mktemp) && trap 'rm -f "$$table"' EXIT && result=0 && \
	export CHAOS_TABLE="$$table" CHAOS_SEEDS=$(CHAOS_SEEDS) CHAOS_RESOURCES=$(CHAOS_RESOURCES) && \
	export CHAOS_KILLS=$(CHAOS_KILLS) && unset KUBEBUILDER_ASSETS && \
	{ cargo test --workspace --test chaos -- --test-threads=1 || result=1; } && \
	{ cargo test --workspace --test operator chaos:: || result=1; } && \
	echo '| fault | seeds or kills | requests | injected | runs until converged, median / worst | duplicates | lost deletes | peak / budget |' && \
	echo '|---|---|---|---|---|---|---|---|' && cat "$$table" && exit $$result

# SOAK_HOURS simulated hours, with SOAK_SPEED simulated seconds in a second.
SOAK_HOURS ?= 24
SOAK_SPEED ?= 144

.PHONY: soak
soak: ## Run 100 policies for a simulated day in ten minutes, and check that nothing grows; see docs/reliability-tests.md
	SOAK_HOURS=$(SOAK_HOURS) SOAK_SPEED=$(SOAK_SPEED) env -u KUBEBUILDER_ASSETS \
	cargo test --workspace --test operator -- --ignored --nocapture nothing_grows

# Further variables: a target ends after FUZZ_RUNS inputs or FUZZ_SECONDS, whichever comes first.
.PHONY: fuzz
fuzz: ## Fuzz the parsers of foreign input, all or some (FUZZ_TARGETS="json yaml"); see docs/fuzzing.md
	fuzz/run.sh $(FUZZ_TARGETS)

##@ Check

# Linters that are not part of Rust run if they are installed. .ci/run installs them.
OPTIONAL_LINTS = $(if $(shell command -v cargo-deny),lint-deny) $(if $(shell command -v typos),lint-spelling)

.PHONY: lint
lint: lint-fmt lint-words lint-clippy lint-doc $(OPTIONAL_LINTS) ## Check format, words, lints, documentation; licences (cargo-deny) and spelling (typos) if installed

.PHONY: lint-fmt
lint-fmt:
	cargo fmt --all --check

.PHONY: lint-words
lint-words: ## Check documentation and sources for the words to avoid of CONTRIBUTING.md
	hack/lint-words

.PHONY: lint-spelling
lint-spelling: ## Check the spelling with typos; typos.toml lists the exceptions
	typos

.PHONY: lint-clippy
lint-clippy:
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --workspace $(REAL_TESTS:%=--test %) $(PRODUCT_TESTS:%=--test %) -- -D warnings

# With the examples, dependencies have the features that clippy has checked them with, so they are not checked again.
.PHONY: lint-doc
lint-doc:
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --lib --bin declarest --examples

.PHONY: lint-deny
lint-deny:
	cargo deny --workspace check licenses bans sources

.PHONY: lint-advisories
lint-advisories: ## Check the dependencies for security advisories (needs cargo-deny and the network)
	cargo deny --workspace check advisories

.PHONY: lint-workflows
lint-workflows: ## Check the workflows with actionlint (needs Go)
	$$(hack/actionlint/build.sh)

.PHONY: count
count: ## Count the code lines of the three crates, without tests, comments and blank lines
	@hack/count-lines.sh

##@ Manifests

.PHONY: generate
generate: manifests schemas reference ## Generate all generated files

.PHONY: manifests
manifests: build ## Generate the CRDs in config/crd/bases and docs/kinds.md from the Rust types
	"$(TARGET_DIR)/debug/declarest-operator" crds --dir config/crd/bases --reference docs/kinds.md

.PHONY: schemas
schemas: build ## Generate the JSON Schemas in config/schemas of files that users edit
	"$(TARGET_DIR)/debug/declarest" schemas --dir config/schemas

.PHONY: reference
reference: build ## Generate the manual of all commands in docs/cli/reference.md
	"$(TARGET_DIR)/debug/declarest" reference --markdown docs/cli/reference.md

.PHONY: man
man: build ## Write the man pages of all commands to dist/man
	"$(TARGET_DIR)/debug/declarest" reference --man dist/man

.PHONY: verify-generated
verify-generated: build ## Fail if generated files differ from the committed ones
	@generated=$$(mktemp -d) && trap 'rm -rf "$$generated"' EXIT && \
	"$(TARGET_DIR)/debug/declarest-operator" crds --dir "$$generated/crd" --reference "$$generated/kinds.md" && \
	"$(TARGET_DIR)/debug/declarest" schemas --dir "$$generated/schemas" && \
	"$(TARGET_DIR)/debug/declarest" reference --markdown "$$generated/reference.md" && \
	diff -u docs/cli/reference.md "$$generated/reference.md" && diff -u docs/kinds.md "$$generated/kinds.md" && \
	diff -ruN config/crd/bases "$$generated/crd" && diff -ruN config/schemas "$$generated/schemas" || \
	{ echo 'generated files are stale; run: make generate' >&2; exit 1; }

.PHONY: verify-kustomize
verify-kustomize: ## Fail if a kustomization, or overlays together with config/default, cannot be rendered
	@for kustomization in config/*/kustomization.yaml config/release/*/kustomization.yaml; do \
		$(KUBECTL) kustomize "$$(dirname "$$kustomization")" >/dev/null || exit 1; \
	done
	@overlays=$$(cd config/overlays && echo */) && \
	used=$$(mktemp -d config/overlays/verify.XXXXXX) && trap 'rm -rf "$$used"' EXIT && \
	render() { \
		printf 'resources: [../../default]\ncomponents: [%s]\n' "$$1" >"$$used/kustomization.yaml" && \
		$(KUBECTL) kustomize "$$used" >/dev/null || { echo "components: [$$1]" >&2; exit 1; }; \
	} && \
	for overlay in $$overlays; do \
		render "../$$overlay"; \
	done && \
	for admission in certmanager openshift; do \
		combined=../admission-$$admission/; \
		for overlay in $$overlays; do \
			case $$overlay in admission-*|sharded/) ;; *) combined="../$$overlay, $$combined" ;; esac; \
		done; \
		render "$$combined"; \
		shards=../sharded/; \
		for overlay in $$overlays; do \
			case $$overlay in admission-*|namespaced/|persistent-state/|sharded/) ;; *) shards="$$shards, ../$$overlay" ;; esac; \
		done; \
		render "$$shards, ../admission-$$admission/"; \
	done

.PHONY: verify-rules
verify-rules: ## Test the alerts of the overlay monitoring (needs promtool)
	hack/verify-rules

.PHONY: verify-image
verify-image: ## Build the root directory of the image, and run the operator in it (needs musl-gcc, and root to run it)
	hack/verify-image

.PHONY: verify-chart
verify-chart: ## Lint the Helm chart and render it with several values (needs Go)
	hack/verify-chart

# Where the manifests and the chart of a release are written.
DIST ?= dist
# The manifests of a release, with the image OPERATOR_IMAGE:OPERATOR_IMAGE_TAG.
INSTALL_MANIFEST = mkdir -p "$(DIST)" && $(KUBECTL) kustomize config/release/$(1) >"$(DIST)/$(2).new" && \
	sed 's|image: declarest-operator:latest|image: $(IMAGE)|' "$(DIST)/$(2).new" >"$(DIST)/$(2)" && \
	rm "$(DIST)/$(2).new"

.PHONY: bundle-install-core
bundle-install-core: ## Write dist/install.yaml: the operator without admission webhooks
	@$(call INSTALL_MANIFEST,core,install.yaml)

.PHONY: bundle-install-admission-certmanager
bundle-install-admission-certmanager: ## Write dist/install-admission-certmanager.yaml: with them, for cert-manager
	@$(call INSTALL_MANIFEST,admission-certmanager,install-admission-certmanager.yaml)

.PHONY: bundle-install-admission-openshift
bundle-install-admission-openshift: ## Write dist/install-admission-openshift.yaml: with them, for OpenShift
	@$(call INSTALL_MANIFEST,admission-openshift,install-admission-openshift.yaml)

.PHONY: release-assets
release-assets: ## Write manifests and chart of the release RELEASE_TAG, such as v1.2.3, and checksums of all its files into dist
	@echo "$(RELEASE_TAG)" | grep -qE '^v[0-9]+\.[0-9]+\.[0-9]+$$' || { echo 'set RELEASE_TAG=vX.Y.Z' >&2; exit 1; }
	@$(MAKE) --no-print-directory OPERATOR_IMAGE_TAG=$(RELEASE_TAG) bundle-install-core \
		bundle-install-admission-certmanager bundle-install-admission-openshift
	@helm=$$(hack/helm/build.sh) && "$$helm" package charts/declarest-operator --destination "$(DIST)" \
		--version $(RELEASE_TAG:v%=%) --app-version $(RELEASE_TAG:v%=%) >/dev/null 2>&1
	@cd "$(DIST)" && rm -f SHA256SUMS && sha256sum -- *.* >SHA256SUMS && cat SHA256SUMS

.PHONY: release-binaries
release-binaries: ## Build the programs for release and pack them into dist (RELEASE_TAG=vX.Y.Z, TARGET=x86_64-unknown-linux-musl)
	DIST="$(DIST)" hack/release-binaries "$(RELEASE_TAG)" "$(TARGET)" declarest declarest-operator

.PHONY: release-sboms
release-sboms: ## Write the SBOMs of the programs, in the format CycloneDX, into dist (needs cargo-cyclonedx)
	cargo cyclonedx --quiet --format json --override-filename release-sbom
	@mkdir -p "$(DIST)"
	mv cli/release-sbom.json "$(DIST)/declarest.cdx.json"
	mv operator/release-sbom.json "$(DIST)/declarest-operator.cdx.json"
	@rm -f */release-sbom.json

.PHONY: pin
pin: ## Pin the actions of the workflows to commits and the base image to its digest (needs the network)
	hack/pin

.PHONY: bundles
bundles: ## Write the bundles of bundles/ to dist/, as archives and as OCI image layouts
	@hack/bundles.sh dist

.PHONY: cli-build
cli-build: ## Build the command line for release and print its path
	cargo build --profile cli -p declarest-cli
	@echo "$(TARGET_DIR)/cli/declarest"

# The development profile in the same target directory, so only the first build is long.
.PHONY: cli-windows
cli-windows: ## Build the command line for Windows (needs gcc-mingw-w64-x86-64)
	rustup target list --installed | grep -qx x86_64-pc-windows-gnu || rustup target add x86_64-pc-windows-gnu
	cargo build -p declarest-cli --target x86_64-pc-windows-gnu
	@echo "$(TARGET_DIR)/x86_64-pc-windows-gnu/debug/declarest.exe"

##@ The operator

.PHONY: operator-build
operator-build: ## Build the operator for release and print its path
	cargo build --release -p declarest-operator
	@echo "$(TARGET_DIR)/release/declarest-operator"

.PHONY: operator-test
operator-test: build ## Run the tests of the operator that do not need a cluster
	env -u KUBEBUILDER_ASSETS cargo test -p declarest-operator

.PHONY: operator-run
operator-run: build ## Run the operator on this machine with the current kubeconfig; first: kubectl apply -k config/crd
	"$(TARGET_DIR)/debug/declarest-operator" --log-format=text \
		--metrics-bind-address=127.0.0.1:8080 --health-probe-bind-address=127.0.0.1:8081 \
		--repository-webhook-bind-address=127.0.0.1:8082 $(ARGS)

.PHONY: operator-image
operator-image: ## Build the image OPERATOR_IMAGE:OPERATOR_IMAGE_TAG with CONTAINER_ENGINE
	$(CONTAINER_ENGINE) build -f Containerfile --build-arg "COMMIT=$$(git rev-parse HEAD)" -t "$(IMAGE)" .

.PHONY: operator-image-push
operator-image-push: ## Push the image
	$(CONTAINER_ENGINE) push "$(IMAGE)"

# What `deploy` and `undeploy` install and delete, such as config/release/admission-certmanager.
KUSTOMIZATION ?= config/default

.PHONY: deploy
deploy: ## Install the operator with that image, and the namespace declarest-system if it is missing
	$(KUBECTL) get namespace declarest-system >/dev/null 2>&1 || $(KUBECTL) create namespace declarest-system
	$(KUBECTL) kustomize $(KUSTOMIZATION) | sed 's|image: declarest-operator:latest|image: $(IMAGE)|' | \
		$(KUBECTL) apply -f -

# Deletes the webhook configuration first, because it protects objects that policies refer to, and the objects next, so
# that the operator can remove what they left on claims. Managed servers and the namespace are kept.
.PHONY: undeploy
undeploy: ## Delete all DeclaREST objects, then the operator
	$(KUBECTL) delete --ignore-not-found validatingwebhookconfiguration \
		declarest-operator-validating-webhook-configuration
	! $(KUBECTL) get crd syncpolicies.declarest.io >/dev/null 2>&1 || \
		$(KUBECTL) delete declarest --all --all-namespaces
	$(KUBECTL) delete --ignore-not-found -k $(KUSTOMIZATION)
