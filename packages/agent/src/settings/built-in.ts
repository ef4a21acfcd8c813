import type { HookEvent, HookSettings, CheckedSettings } from './schema.ts'

/** The settings in force. Settings without a value or default are absent. */
export interface Settings extends Pick<
  CheckedSettings,
  'model' | 'thinkingLevel' | 'fallbackModel' | 'smallModel' | 'maxOutputTokens' | 'temperature' | 'shellPrefix'
> {
  modelCycle: string[]
  permissions: { mode: NonNullable<NonNullable<CheckedSettings['permissions']>['mode']> }
  projects: NonNullable<CheckedSettings['projects']>
  limits: Required<NonNullable<CheckedSettings['limits']>>
  compaction: Required<NonNullable<CheckedSettings['compaction']>>
  snapshots: Required<NonNullable<CheckedSettings['snapshots']>>
  sandbox: Required<NonNullable<CheckedSettings['sandbox']>>
  retry: Required<NonNullable<CheckedSettings['retry']>>
  steerPolicy: NonNullable<CheckedSettings['steerPolicy']>
  conversations: { queue: Required<NonNullable<NonNullable<CheckedSettings['conversations']>['queue']>> }
  reasoning: NonNullable<CheckedSettings['reasoning']>
  hooks: { [Event in HookEvent]?: HookSettings[] }
  mcpServers: NonNullable<CheckedSettings['mcpServers']>
  agents: NonNullable<CheckedSettings['agents']>
  languageServers: { isEnabled: boolean }
  providers: NonNullable<CheckedSettings['providers']>
  redaction: { allow: string[] }
  systemPrompt: { append: string[] }
  /** Absolute, like the folders. */
  extensions: string[]
  skillFolders: string[]
  promptFolders: string[]
  web: { allowPrivateAddresses: boolean }
  terminal: Required<NonNullable<CheckedSettings['terminal']>>
}

/** The defaults. A test compares them with those of a run. */
export const builtIn: CheckedSettings = {
  modelCycle: [],
  permissions: { mode: 'sandboxed' },
  limits: { run: { logBytesPerTurn: 64 * 1024 * 1024 }, session: {} },
  compaction: { isEnabled: true, reserveTokens: 16_384, keepTokens: 20_000, headStartTokens: 20_000 },
  snapshots: { isEnabled: true, maxAgeDays: 30, maxBytes: 2 * 1024 ** 3 },
  sandbox: {
    isRequired: false,
    showsSecretFiles: false,
    reachesRegistries: true,
    outsideHooks: [],
    outsideServers: [],
    limits: {},
  },
  retry: { maxRetries: 3, baseMs: 2000, capMs: 60_000, longestRetryAfterMs: 600_000, jitter: 0.2 },
  steerPolicy: 'skip-remaining',
  conversations: { queue: { enabled: true, delay_seconds: 0 } },
  reasoning: 'auto',
  languageServers: { isEnabled: true },
  web: { allowPrivateAddresses: false },
  terminal: { theme: 'dark', vim: false, screenReader: false, altScreen: true },
}
