import { messageRoles, type Content, type Message } from '@tapetree/session'
import { z } from 'zod'
import type { CommandResult, HookName, HookResults } from './extension.ts'
import { ExtensionFailure } from './extension-failure.ts'

const metadata = z.record(z.string(), z.unknown())

const content: z.ZodType<Content> = z.lazy(() =>
  z.discriminatedUnion('type', [
    z.looseObject({
      type: z.literal('text'),
      text: z.looseObject({ content: z.string(), providerMetadata: metadata.exactOptional() }),
    }),
    z.looseObject({ type: z.literal('image'), image: z.looseObject({ source: imageSource }) }),
    z.looseObject({
      type: z.literal('tool_use'),
      toolUse: z.looseObject({
        id: z.string(),
        name: z.string(),
        input: z.record(z.string(), z.unknown()),
        partialInput: z.string().exactOptional(),
        providerMetadata: metadata.exactOptional(),
      }),
    }),
    z.looseObject({
      type: z.literal('tool_result'),
      toolResult: z.looseObject({
        toolUseId: z.string(),
        isError: z.boolean().exactOptional(),
        content: z.union([z.string(), z.array(content)]),
      }),
    }),
    z.looseObject({
      type: z.literal('reasoning'),
      reasoning: z.looseObject({
        text: z.string(),
        signature: z.string().exactOptional(),
        providerMetadata: metadata.exactOptional(),
      }),
    }),
  ]),
)

const imageSource = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('base64'), mediaType: z.string(), data: z.string() }),
  z.looseObject({ type: z.literal('url'), mediaType: z.string(), data: z.string() }),
  z.looseObject({ type: z.literal('blob'), mediaType: z.string(), sha256: z.string(), size: z.number() }),
])

/** Other members stay unchanged. */
const message = z.looseObject({
  role: z.enum(messageRoles),
  content: z.array(content),
}) as unknown as z.ZodType<Message>

/** A tool may return only text and images. */
const shown = content.refine(({ type }) => type === 'text' || type === 'image', 'only text and images can be given')
const toolContent = z.union([z.string(), z.array(shown)])

const nothing = z.undefined()
const turnChanges = z.strictObject({
  systemPrompt: z.string().exactOptional(),
  message: z.string().min(1).exactOptional(),
})
const results = {
  sessionStart: nothing,
  sessionEnd: nothing,
  turnStart: turnChanges,
  turnEnd: turnChanges,
  beforeAgentStart: turnChanges.extend({ prompt: z.string().min(1).exactOptional() }),
  toolCall: z.union([
    z.strictObject({ block: z.string().min(1) }),
    z.strictObject({ input: z.record(z.string(), z.unknown()) }),
  ]),
  toolResult: z.strictObject({ content: toolContent.exactOptional(), isError: z.boolean().exactOptional() }),
  context: z.strictObject({ messages: z.array(message) }),
  beforeCompact: z.union([z.strictObject({ cancel: z.literal(true) }), z.strictObject({ instructions: z.string() })]),
} satisfies Record<HookName, z.ZodType>

/** The validated result of a handler, or undefined. Throws if it is invalid. */
export function readResult<Name extends HookName>(hook: Name, value: unknown): HookResults[Name] | undefined {
  if (value === undefined) return undefined
  return parsed(results[hook], value) as HookResults[Name]
}

const command = z.strictObject({ say: z.string().exactOptional(), prompt: z.string().min(1).exactOptional() })

export function readCommandResult(value: unknown): CommandResult {
  return value === undefined ? undefined : parsed(command, value)
}

const output = z.union([
  z.string().transform((content) => ({ content })),
  z.strictObject({ content: toolContent, isError: z.boolean().exactOptional() }),
])

export function readToolOutput(value: unknown): z.output<typeof output> {
  return parsed(output, value)
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw new ExtensionFailure('wrong-value', `Its result is not valid. ${z.prettifyError(result.error)}`)
}
