import { z } from 'zod'
import { hooks, mcpServers } from './schema/commands.ts'
import { modelName, providers, thinkingLevel } from './schema/models.ts'
import { permissions } from './schema/permissions.ts'
import { compaction, conversations, reasoningPolicy, retry, runAndSessionLimits, steerPolicy } from './schema/run.ts'
import { terminal } from './schema/terminal.ts'

/** Everything that can be set, as it stands in a file. Each layer may leave out whatever it likes. */
export const settingsSchema = z.strictObject({
  model: modelName.describe('The model a new session begins with, as provider/id.').exactOptional(),
  thinkingLevel: thinkingLevel
    .describe('How much the model thinks before it answers. Left to the model where it is not set.')
    .exactOptional(),
  fallbackModel: modelName.describe('Taken over when the model is overloaded or out of quota.').exactOptional(),
  smallModel: modelName.describe('For small things such as titles.').exactOptional(),
  modelCycle: z.array(modelName).describe('The models that are cycled through.').exactOptional(),
  maxOutputTokens: z.int().positive().describe('The longest answer that is asked for.').exactOptional(),
  temperature: z.number().min(0).max(2).describe('Passed on to the model.').exactOptional(),
  permissions: permissions.exactOptional(),
  limits: runAndSessionLimits.exactOptional(),
  compaction: compaction.exactOptional(),
  retry: retry.exactOptional(),
  steerPolicy: steerPolicy.describe('What a message does that comes while tools run.').exactOptional(),
  conversations: conversations.exactOptional(),
  reasoning: reasoningPolicy.describe('Which thoughts of earlier turns are sent back to the model.').exactOptional(),
  shellPrefix: z.string().min(1).describe('Put before every command of the user (`!command`).').exactOptional(),
  hooks: hooks.exactOptional(),
  mcpServers: mcpServers
    .describe(
      'MCP servers: command, args, env, cwd; or url, headers, oauth. A project may add some, never replace one.',
    )
    .exactOptional(),
  providers: providers
    .describe('Providers of your own: api, baseUrl, keyVariable, headers, models. Never from a project.')
    .exactOptional(),
  redaction: z
    .strictObject({
      allow: z
        .array(z.string().min(1))
        .describe('Names of values that are not taken out of what is logged. Never from a project.')
        .exactOptional(),
    })
    .exactOptional(),
  systemPrompt: z
    .strictObject({
      append: z.string().describe('Added to the system prompt. Those of all layers are joined.').exactOptional(),
    })
    .exactOptional(),
  extensions: z
    .array(z.string().min(1))
    .describe('Extensions to load. Lists of all layers are joined; paths begin at the file that names them.')
    .exactOptional(),
  skillFolders: z
    .array(z.string().min(1))
    .describe('Further folders with skills. Lists of all layers are joined.')
    .exactOptional(),
  promptFolders: z
    .array(z.string().min(1))
    .describe('Further folders with prompt templates. Lists of all layers are joined.')
    .exactOptional(),
  web: z
    .strictObject({
      allowPrivateAddresses: z
        .boolean()
        .describe('Whether pages of this machine and its network may be fetched. A project cannot switch it on.')
        .exactOptional(),
    })
    .exactOptional(),
  terminal: terminal.exactOptional(),
})

/** What one layer says. */
export type SettingsInput = z.input<typeof settingsSchema>
/** The same, checked. */
export type CheckedSettings = z.output<typeof settingsSchema>

/** For editors and for the reference. */
export function settingsJsonSchema(): z.core.JSONSchema.JSONSchema {
  return z.toJSONSchema(settingsSchema, { io: 'input' })
}
