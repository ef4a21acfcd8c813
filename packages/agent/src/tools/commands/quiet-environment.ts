/**
 * With these, programs that are asked to read keep no notes of it, which is what the permission gate counts on. Without them git
 * writes its index anew when it looks at files, and npm keeps a log of every call.
 */
export const quietEnvironment: Readonly<Record<string, string>> = {
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
