import { z } from 'zod'
import { providerApis } from '../models/hosts.ts'
import { thinkingLevels } from '../models/model.ts'
import { permissionModes } from '../permissions/modes.ts'
import { ruleSchema, type Effect } from '../permissions/rules.ts'
import { mcpServerName, mcpServerSchema } from '../mcp/server-settings.ts'

const timeoutMs = z.int().positive().max(600_000)

/** When a hook runs, and what for. */
const hookMoments = {
  sessionStart: 'when a session is opened',
  sessionEnd: 'when a session is closed',
  beforeAgentStart: 'before a run begins',
  turnStart: 'before each request to the model',
  turnEnd: 'after each answer and its tool calls',
  toolCall: 'before a tool call; may block it',
  toolResult: 'after a tool call',
  context: 'before the context is sent',
  beforeCompact: 'before the context is compacted',
} as const

export type HookEvent = keyof typeof hookMoments

const hook = z.strictObject({
  /** The names of its tools, with `*` at the end for a prefix; absent for all. */
  matcher: z.string().min(1).exactOptional(),
  command: z.string().min(1),
  timeoutMs: timeoutMs.exactOptional(),
})

export type HookSettings = z.output<typeof hook>

const hooks = z.strictObject({
  sessionStart: hooksFor('sessionStart'),
  sessionEnd: hooksFor('sessionEnd'),
  beforeAgentStart: hooksFor('beforeAgentStart'),
  turnStart: hooksFor('turnStart'),
  turnEnd: hooksFor('turnEnd'),
  toolCall: hooksFor('toolCall'),
  toolResult: hooksFor('toolResult'),
  context: hooksFor('context'),
  beforeCompact: hooksFor('beforeCompact'),
} satisfies Record<HookEvent, unknown>)

function hooksFor(event: HookEvent) {
  const words = `Commands run ${hookMoments[event]}: matcher (optional), command, timeoutMs. Lists of all layers are joined.`
  return z.array(hook).describe(words).exactOptional()
}

/**
 * In the common notation: `command` makes it a program, `url` a remote server, and a list of names is what `env` passes
 * on.
 */
const writtenServer = z.preprocess((written) => {
  if (typeof written !== 'object' || written === null || Array.isArray(written)) return written
  const type = 'command' in written ? 'stdio' : 'url' in written ? 'http' : undefined
  const names = 'env' in written && Array.isArray(written.env) ? { env: { pass: written.env as unknown[] } } : {}
  return { ...(type !== undefined && { type }), ...written, ...names }
}, mcpServerSchema)

const mcpServers = z.record(mcpServerName, writtenServer)

/** A program that speaks the Agent Client Protocol, in the notation of MCP servers. */
const agentProgram = z.strictObject({
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  env: z
    .strictObject({
      pass: z.array(z.string().min(1)).default([]),
      set: z.record(z.string().min(1), z.string()).default({}),
    })
    .default({ pass: [], set: {} }),
  folders: z.array(z.string().min(1)).default([]),
})

export type AgentProgramSettings = z.output<typeof agentProgram>

const count = z.int().positive()
const milliseconds = z.int().nonnegative()

function limits(scope: 'run' | 'session') {
  return z.strictObject({
    turns: count.describe(`Turns of one ${scope}.`).exactOptional(),
    toolCalls: count.describe(`Tool calls of one ${scope}.`).exactOptional(),
    tokens: count.describe(`Tokens of one ${scope}, input and output.`).exactOptional(),
    cost: z.number().positive().describe(`US dollars for one ${scope}.`).exactOptional(),
    wallMs: count.describe(`Milliseconds that one ${scope} may take.`).exactOptional(),
    logBytesPerTurn: count.describe('Bytes that one turn may add to the log.').exactOptional(),
  })
}

const runAndSessionLimits = z.strictObject({
  run: limits('run').exactOptional(),
  session: limits('session').exactOptional(),
})

const compaction = z.strictObject({
  isEnabled: z.boolean().describe('False: the context is compacted only on request.').exactOptional(),
  reserveTokens: z
    .int()
    .nonnegative()
    .describe('Tokens of the context window to keep free; compaction starts before they are used.')
    .exactOptional(),
  keepTokens: z
    .int()
    .nonnegative()
    .describe('About how many tokens of the conversation stay verbatim.')
    .exactOptional(),
  headStartTokens: z
    .int()
    .nonnegative()
    .describe('The summary is begun so many tokens earlier, while the run continues. 0: the run waits for it.')
    .exactOptional(),
})

const snapshots = z.strictObject({
  isEnabled: z
    .boolean()
    .describe('False: the files of the folder are not recorded, so they cannot be put back. Never from a project.')
    .exactOptional(),
  maxAgeDays: z
    .int()
    .min(1)
    .max(36_500)
    .describe('All snapshots are kept for so many days, and afterwards those at your messages. Never from a project.')
    .exactOptional(),
  maxBytes: z
    .int()
    .positive()
    .describe(
      'If the snapshots of a folder use more disk space, older ones are deleted, except those at messages of current branches. Never from a project.',
    )
    .exactOptional(),
})

const commandLimits = z.strictObject({
  cpuSeconds: count
    .describe('Seconds of processor time for each process of a command in the sandbox. A project can only lower it.')
    .exactOptional(),
  memoryBytes: count
    .describe('Bytes of memory for each process of a command in the sandbox. A project can only lower it.')
    .exactOptional(),
  processes: count
    .describe('Processes and threads of one command in the sandbox. A project can only lower it.')
    .exactOptional(),
  fileBytes: count
    .describe('Bytes of each file that a command in the sandbox writes. A project can only lower it.')
    .exactOptional(),
})

const sandbox = z.strictObject({
  isRequired: z
    .boolean()
    .describe('True: refuses to run if commands cannot run in a sandbox. A project cannot turn it off.')
    .exactOptional(),
  showsSecretFiles: z
    .boolean()
    .describe(
      'Whether commands in the sandbox can read .env and other secret files of the folder. Never from a project.',
    )
    .exactOptional(),
  reachesRegistries: z
    .boolean()
    .describe(
      'Whether commands in the sandbox reach the registries that your package managers are configured for, without a question. A project can only turn it off.',
    )
    .exactOptional(),
  outsideHooks: z
    .array(z.string().min(1))
    .describe('Hooks that run outside of the sandbox: their commands, exactly as in `hooks`. Never from a project.')
    .exactOptional(),
  outsideServers: z
    .array(z.string().min(1))
    .describe(
      'MCP servers that run outside of the sandbox, by name. It does not apply to servers of a project. Never from a project.',
    )
    .exactOptional(),
  limits: commandLimits.exactOptional(),
})

const retry = z.strictObject({
  maxRetries: z.int().min(0).max(20).describe('How often a failed request is retried.').exactOptional(),
  baseMs: milliseconds.max(600_000).describe('The first delay before a retry; it doubles each time.').exactOptional(),
  capMs: milliseconds.max(3_600_000).describe('The longest delay between two retries.').exactOptional(),
  longestRetryAfterMs: milliseconds
    .max(86_400_000)
    .describe('The longest wait that a provider may ask for; beyond it the run fails.')
    .exactOptional(),
  jitter: z.number().min(0).max(1).describe('Lengthens a delay by up to this fraction.').exactOptional(),
})

/** Spelled as in the specification of sessions. */
const conversations = z.strictObject({
  queue: z
    .strictObject({
      enabled: z
        .boolean()
        .describe('False: a queued message is delivered only when a person releases it, or sends a later prompt.')
        .exactOptional(),
      delay_seconds: z
        .number()
        .nonnegative()
        .max(600)
        .describe('How long a queued message is announced before it is delivered.')
        .exactOptional(),
    })
    .exactOptional(),
})

const steerPolicy = z.enum(['skip-remaining', 'after-batch', 'interrupt'])
const reasoningPolicy = z.enum(['auto', 'turn', 'never'])

const themeName = z.enum(['dark', 'light', 'high-contrast'])
const permissionMode = z.enum(permissionModes)

/** The appearance and keys of the chat in the terminal. */
const terminal = z.strictObject({
  theme: themeName.describe('The colors of the chat in the terminal.').exactOptional(),
  vim: z.boolean().describe('Whether the input uses vi keys.').exactOptional(),
  screenReader: z.boolean().describe('Whether output is only appended and never redrawn.').exactOptional(),
  altScreen: z
    .boolean()
    .describe('Whether the chat uses its own full screen. False: it stays in the scrollback of the terminal.')
    .exactOptional(),
})

/** A rule as people write it: `command npm run *`, or an object if the words have blanks. */
const writtenRule = z.union([
  z.string(),
  z.strictObject({ type: z.string(), match: z.union([z.string(), z.array(z.string())]) }),
])

const permissions = z.strictObject({
  mode: permissionMode
    .describe(
      'How much is allowed without a permission request. If no sandbox works, `sandboxed` becomes `ask`. A project can narrow it, never widen it.',
    )
    .exactOptional(),
  allow: rulesThat('allow')
    .describe(
      'What is allowed without a permission request. Rules of a project apply only if it is trusted. Lists of all layers are joined.',
    )
    .exactOptional(),
  ask: rulesThat('ask')
    .describe('What always requires a permission request. Lists of all layers are joined.')
    .exactOptional(),
  deny: rulesThat('deny').describe('What is always denied. Lists of all layers are joined.').exactOptional(),
})

function rulesThat(effect: Effect) {
  return z.array(
    writtenRule.transform((written, context) => {
      const parsed = ruleSchema.safeParse({ effect, ...(typeof written === 'string' ? fromText(written) : written) })
      if (parsed.success) return parsed.data
      context.addIssue({ code: 'custom', message: `This is not a rule. ${ruleForms}` })
      return z.NEVER
    }),
  )
}

const ruleForms = 'A rule is "command …", "read …", "write …", "fetch …" or "tool …".'

function fromText(text: string): { type?: string | undefined; match?: string | undefined } {
  const [, type, match] = /^\s*(\w+)\s+(.*\S)\s*$/s.exec(text) ?? []
  return { type, match }
}

const modelName = z
  .string()
  .regex(
    /^(?:(?!https?:\/\/)[^\s/]+\/\S+|https?:\/\/[^\s#]+#\S+)$/i,
    'A model is written as provider/id, or as http://host:port/v1#id.',
  )
const thinkingLevel = z.enum(thinkingLevels)

const tokens = z.int().positive()
const price = z.number().nonnegative()

/** US dollars for a million tokens. */
const tokenPrices = z.strictObject({
  input: price,
  output: price,
  cacheRead: price.exactOptional(),
  cacheWrite: price.exactOptional(),
})

const addedModel = z.strictObject({
  /** Ids are part of references and are displayed: no blanks, and no control characters. */
  id: z.string().regex(/^[\w@~./][\w.:@/+~=-]{0,199}$/),
  name: z.string().min(1).max(200).exactOptional(),
  contextTokens: tokens.exactOptional(),
  outputTokens: tokens.exactOptional(),
  thinkingLevels: z.array(thinkingLevel).exactOptional(),
  hasImages: z.boolean().exactOptional(),
  prices: tokenPrices
    .extend({ tiers: z.array(tokenPrices.extend({ inputTokensAbove: price })).exactOptional() })
    .exactOptional(),
})

const providerId = z
  .string()
  .regex(/^[A-Za-z0-9][\w-]{0,63}$/, 'The id of a provider must have at most 64 letters, digits, - and _.')

/** A user-defined provider, or changes to one of the catalogue. */
const providers = z.record(
  providerId,
  z.strictObject({
    name: z.string().min(1).max(200).exactOptional(),
    /** Its wire format. */
    api: z.enum(providerApis).exactOptional(),
    baseUrl: z.url({ protocol: /^https?$/ }).exactOptional(),
    keyVariable: z
      .string()
      .regex(/^[A-Za-z_]\w{0,127}$/, 'The name of an environment variable, not its value.')
      .exactOptional(),
    headers: z.record(z.string().min(1), z.string()).exactOptional(),
    models: z.array(addedModel).exactOptional(),
  }),
)

/** What the user chose and allowed in a project, by the path of its root. */
const projects = z.record(
  z.string().regex(/^[/]/, 'A project is named by its absolute path.'),
  z.strictObject({
    allow: rulesThat('allow').exactOptional(),
    model: modelName.exactOptional(),
    thinkingLevel: thinkingLevel.exactOptional(),
    mode: permissionMode.exactOptional(),
    theme: themeName.exactOptional(),
  }),
)

/** All settings, as in a file. Each layer may omit any of them. */
export const settingsSchema = z.strictObject({
  model: modelName.describe('The model of a new session, as provider/id.').exactOptional(),
  thinkingLevel: thinkingLevel
    .describe('How much the model thinks before it answers. By default the model decides.')
    .exactOptional(),
  fallbackModel: modelName.describe('Used when the model is overloaded or its quota is exhausted.').exactOptional(),
  smallModel: modelName.describe('For small tasks such as titles.').exactOptional(),
  modelCycle: z.array(modelName).describe('The models to cycle through.').exactOptional(),
  maxOutputTokens: z.int().positive().describe('The maximum length of an answer.').exactOptional(),
  temperature: z.number().min(0).max(2).describe('Passed on to the model.').exactOptional(),
  permissions: permissions.exactOptional(),
  projects: projects
    .describe(
      'Your choices in single projects, by the absolute path of the repository: model, thinkingLevel, mode, theme, and rules under allow. The chat ' +
        'remembers them here. Never from a project.',
    )
    .exactOptional(),
  limits: runAndSessionLimits.exactOptional(),
  compaction: compaction.exactOptional(),
  snapshots: snapshots.exactOptional(),
  sandbox: sandbox.exactOptional(),
  retry: retry.exactOptional(),
  steerPolicy: steerPolicy.describe('What a message does that arrives while tools run.').exactOptional(),
  conversations: conversations.exactOptional(),
  reasoning: reasoningPolicy.describe('Which reasoning of earlier turns is sent back to the model.').exactOptional(),
  shellPrefix: z.string().min(1).describe('Prepended to every command of the user (`!command`).').exactOptional(),
  hooks: hooks.exactOptional(),
  mcpServers: mcpServers
    .describe(
      'MCP servers: command, args, env, cwd; or url, headers, oauth. A project may add servers, but not replace one.',
    )
    .exactOptional(),
  agents: z
    .record(mcpServerName, agentProgram)
    .describe(
      'Agents that speak the Agent Client Protocol: command, args, env (pass, set), folders that they may read and write beside the working folder. Never from a project.',
    )
    .exactOptional(),
  languageServers: z
    .strictObject({
      isEnabled: z
        .boolean()
        .describe(
          'False: no language server is started. Otherwise those of trusted projects are. A project cannot turn them on.',
        )
        .exactOptional(),
    })
    .exactOptional(),
  providers: providers
    .describe('User-defined providers: api, baseUrl, keyVariable, headers, models. Never from a project.')
    .exactOptional(),
  redaction: z
    .strictObject({
      allow: z
        .array(z.string().min(1))
        .describe('Names of values that are not redacted. Never from a project.')
        .exactOptional(),
    })
    .exactOptional(),
  systemPrompt: z
    .strictObject({
      append: z.string().describe('Appended to the system prompt. Texts of all layers are joined.').exactOptional(),
    })
    .exactOptional(),
  extensions: z
    .array(z.string().min(1))
    .describe('Extensions to load. Lists of all layers are joined; paths are relative to the settings file.')
    .exactOptional(),
  skillFolders: z
    .array(z.string().min(1))
    .describe('Additional folders with skills. Lists of all layers are joined.')
    .exactOptional(),
  promptFolders: z
    .array(z.string().min(1))
    .describe('Additional folders with prompt templates. Lists of all layers are joined.')
    .exactOptional(),
  web: z
    .strictObject({
      allowPrivateAddresses: z
        .boolean()
        .describe('Whether the agent may fetch pages of this machine and its network. A project cannot enable it.')
        .exactOptional(),
    })
    .exactOptional(),
  terminal: terminal.exactOptional(),
})

/** The settings of one layer. */
export type SettingsInput = z.input<typeof settingsSchema>
/** The same, validated. */
export type CheckedSettings = z.output<typeof settingsSchema>

/** For editors and for the reference. */
export function settingsJsonSchema(): z.core.JSONSchema.JSONSchema {
  return z.toJSONSchema(settingsSchema, { io: 'input' })
}
