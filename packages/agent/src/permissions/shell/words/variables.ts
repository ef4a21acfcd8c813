/**
 * Variables that a command line may set without a request. Most names mean something to some program (`PATH`,
 * `LD_PRELOAD`, `GIT_PAGER`, `IFS`, `BASH_ENV`, `RANDOM`), so any name that is not known to be harmless requires a
 * request.
 */

/** Whether the shell may set this as its own variable. */
export function isPlainVariable(name: string): boolean {
  if (conventional.has(name)) return true
  return /^[a-z_][a-z0-9_]*$/.test(name) && name !== '_' && !/^(?:npm|pnpm|yarn)_|_proxy$|^histchars$/.test(name)
}

/** Names in capitals that people use and that no known program reads. */
const conventional = new Set(
  'FILE FILES DIR DIRS NAME NAMES COUNT TOTAL BRANCH COMMIT BASE TAG SRC PATTERN RESULT PKG LINE START END MSG'.split(
    ' ',
  ),
)

/** Whether a program may be started with it: `LC_ALL=C sort`. */
export function isHarmlessFor(name: string, value: string | undefined): boolean {
  return value !== undefined && (harmlessValues.get(name)?.test(value) ?? false)
}

const word = /^[A-Za-z0-9_.@-]*$/
const number = /^\d{0,6}$/
const none = /^(cat)?$/

const harmlessValues = new Map([
  ...['LC_ALL', 'LC_COLLATE', 'LC_CTYPE', 'LC_NUMERIC', 'LC_TIME', 'LC_MESSAGES', 'LANG'].map(
    (name) => [name, word] as const,
  ),
  ['TZ', /^[A-Za-z0-9_+-]+(\/[A-Za-z0-9_+-]+)*$/],
  ['NO_COLOR', word],
  ['FORCE_COLOR', number],
  ['CLICOLOR', number],
  ['COLUMNS', number],
  ['LINES', number],
  ['TERM', /^(dumb|xterm|xterm-256color|vt100)$/],
  ['CI', word],
  ['PAGER', none],
  ['GIT_PAGER', none],
  ['GIT_OPTIONAL_LOCKS', number],
])
