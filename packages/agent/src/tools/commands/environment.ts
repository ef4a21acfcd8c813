import { markVariable } from './process-tree.ts'

export interface EnvironmentOptions {
  /** Additional variables that commands may see; a trailing `*` matches any ending. */
  pass?: readonly string[]
  /** Variables that commands always get. */
  set?: Readonly<Record<string, string>>
}

/**
 * The environment of a command: only variables known to be harmless and often needed. Provider keys, tokens and
 * sockets of key agents are excluded.
 */
export function commandEnvironment(
  ours: Readonly<Record<string, string | undefined>>,
  { pass = [], set = {} }: EnvironmentOptions = {},
): Record<string, string> {
  const patterns = [...harmless, ...pass]
  const passed = Object.entries(ours).filter(
    (variable): variable is [string, string] =>
      variable[1] !== undefined && patterns.some((pattern) => matches(variable[0], pattern)),
  )
  return { TERM: 'dumb', ...Object.fromEntries(passed), ...unattended, ...quietEnvironment, ...set }
}

function matches(name: string, pattern: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}

const harmless = `
  PATH HOME USER LOGNAME SHELL TERM TZ LANG LANGUAGE LC_* TMPDIR TMP TEMP XDG_* HOSTNAME CI DISPLAY WAYLAND_DISPLAY
  HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy
  SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NIX_SSL_CERT_FILE
  CC CXX AR LD CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS PKG_CONFIG_PATH CMAKE_PREFIX_PATH CMAKE_GENERATOR CCACHE_DIR
  LD_LIBRARY_PATH DYLD_LIBRARY_PATH CPATH LIBRARY_PATH MANPATH NIX_PATH NIX_PROFILES
  JAVA_HOME GRADLE_USER_HOME M2_HOME MAVEN_HOME ANDROID_HOME ANDROID_SDK_ROOT SDKMAN_DIR DOTNET_ROOT
  GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOPROXY GOTOOLCHAIN CGO_ENABLED
  CARGO_HOME CARGO_TARGET_DIR RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS RUST_BACKTRACE
  VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT PYENV_VERSION PYTHONPATH UV_CACHE_DIR
  GEM_HOME GEM_PATH RBENV_ROOT RBENV_VERSION BUNDLE_GEMFILE BUNDLE_PATH PERL5LIB
  NVM_DIR NODE_ENV NODE_PATH NODE_OPTIONS COREPACK_HOME PNPM_HOME BUN_INSTALL DENO_DIR VOLTA_HOME FNM_DIR
  ASDF_DIR ASDF_DATA_DIR HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY
  GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_CONFIG_GLOBAL ${markVariable}
`
  .trim()
  .split(/\s+/)

/** No person is there to page, to edit or to type a password. */
const unattended = {
  NO_COLOR: '1',
  PAGER: 'cat',
  GIT_PAGER: 'cat',
  MANPAGER: 'cat',
  SYSTEMD_PAGER: '',
  GIT_TERMINAL_PROMPT: '0',
  GIT_EDITOR: 'true',
  DEBIAN_FRONTEND: 'noninteractive',
}

/**
 * These keep read-only programs from writing, which the permission gate relies on. Without them git rewrites
 * its index when it looks at files, and npm logs every call.
 */
const quietEnvironment: Readonly<Record<string, string>> = {
  GIT_OPTIONAL_LOCKS: '0',
  ...gitSettings({ 'diff.autoRefreshIndex': 'false', 'core.fsmonitor': 'false', 'log.showSignature': 'false' }),
  npm_config_logs_max: '0',
  npm_config_update_notifier: 'false',
}

function gitSettings(settings: Record<string, string>): Record<string, string> {
  const entries = Object.entries(settings)
  const variables = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ])
  return { GIT_CONFIG_COUNT: String(entries.length), ...(Object.fromEntries(variables) as Record<string, string>) }
}
