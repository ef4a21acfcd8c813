import type { HookEvent, HookSettings, CheckedSettings } from './schema.ts'

export type Groups = { [Key in keyof CheckedSettings]-?: NonNullable<CheckedSettings[Key]> }

/** The settings in force. Settings without a value or default are absent. */
export interface Settings extends Pick<
  CheckedSettings,
  'model' | 'thinkingLevel' | 'fallbackModel' | 'smallModel' | 'maxOutputTokens' | 'temperature' | 'shellPrefix'
> {
  modelCycle: string[]
  permissions: { mode: NonNullable<Groups['permissions']['mode']> }
  limits: Required<Groups['limits']>
  compaction: Required<Groups['compaction']>
  retry: Required<Groups['retry']>
  steerPolicy: Groups['steerPolicy']
  conversations: { queue: Required<NonNullable<Groups['conversations']['queue']>> }
  reasoning: Groups['reasoning']
  hooks: { [Event in HookEvent]?: HookSettings[] }
  mcpServers: Groups['mcpServers']
  providers: Groups['providers']
  redaction: { allow: string[] }
  systemPrompt: { append: string[] }
  /** Absolute, like the folders. */
  extensions: string[]
  skillFolders: string[]
  promptFolders: string[]
  web: { allowPrivateAddresses: boolean }
  terminal: Required<Groups['terminal']>
}

/** The defaults. A test compares them with those of a run. */
export const builtIn: CheckedSettings = {
  modelCycle: [],
  permissions: { mode: 'ask' },
  limits: { run: { logBytesPerTurn: 64 * 1024 * 1024 }, session: {} },
  compaction: { isEnabled: true, reserveTokens: 16_384, keepTokens: 20_000 },
  retry: { maxRetries: 3, baseMs: 2000, capMs: 60_000, longestRetryAfterMs: 600_000, jitter: 0.2 },
  steerPolicy: 'skip-remaining',
  conversations: { queue: { enabled: true, delay_seconds: 0 } },
  reasoning: 'auto',
  web: { allowPrivateAddresses: false },
  terminal: { theme: 'dark', vim: false, screenReader: false, altScreen: true },
}
