/** What every program may need of our environment and what gives nothing away. */
const harmless = `
  PATH HOME USER LOGNAME SHELL TERM TZ LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES LC_NUMERIC LC_TIME LC_COLLATE TMPDIR TMP TEMP
  XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
`
  .trim()
  .split(/\s+/)

/**
 * What the program of a server gets to see: names that are known to be harmless, those that its settings name one by one, and
 * fixed values. A key reaches it only where the user wrote its name down for this very server.
 */
export function serverEnvironment(
  ours: Readonly<Record<string, string | undefined>>,
  { pass, set }: { pass: readonly string[]; set: Readonly<Record<string, string>> },
): Record<string, string> {
  const passed = [...harmless, ...pass].flatMap((name): [string, string][] => {
    const value = ours[name]
    return value === undefined ? [] : [[name, value]]
  })
  return { ...Object.fromEntries(passed), ...set }
}
