# Prompted credentials are stored for this shell and removed when it exits.
if [ -z "${DECLAREST_PROMPT_AUTH_SESSION_ID:-}" ]; then
  export DECLAREST_PROMPT_AUTH_SESSION_ID="bash:$$"
fi

declarest_prompt_auth_cleanup() {
  # Keep a session that another shell started.
  [ "${DECLAREST_PROMPT_AUTH_SESSION_ID:-}" = "bash:$$" ] || return 0
  command declarest context clean --credentials-in-session >/dev/null 2>&1 || true
}

declarest_prompt_auth_on_exit() {
  local status=$?
  declarest_prompt_auth_cleanup
  if [ -n "${__declarest_prompt_auth_prev_exit:-}" ]; then
    (exit "$status")
    eval "$__declarest_prompt_auth_prev_exit"
  fi
}

if [ -z "${__declarest_prompt_auth_bash_hook_installed:-}" ]; then
  __declarest_prompt_auth_bash_hook_installed=1
  # `trap -p` prints the earlier trap as a shell command with quotes, so it is evaluated to get its text.
  __declarest_prompt_auth_prev_exit=$(trap -p EXIT)
  __declarest_prompt_auth_prev_exit=$(eval "set -- $__declarest_prompt_auth_prev_exit"; printf '%s' "${3-}")
  trap declarest_prompt_auth_on_exit EXIT
fi
