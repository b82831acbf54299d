# Prompted credentials are stored for this shell and removed when it exits.
if [[ -z "${DECLAREST_PROMPT_AUTH_SESSION_ID:-}" ]]; then
  export DECLAREST_PROMPT_AUTH_SESSION_ID="zsh:$$"
fi

declarest_prompt_auth_cleanup() {
  # Keep a session that another shell started.
  [[ "${DECLAREST_PROMPT_AUTH_SESSION_ID:-}" == "zsh:$$" ]] || return 0
  command declarest context clean --credentials-in-session >/dev/null 2>&1 || true
}

typeset -ga zshexit_functions
if (( ! ${zshexit_functions[(I)declarest_prompt_auth_cleanup]} )); then
  zshexit_functions+=(declarest_prompt_auth_cleanup)
fi
