import { realPathOf } from '../tools/files/paths.ts'
import { readToolInput } from '../tools/tool-input.ts'
import { ToolProblem } from '../tools/tool-problem.ts'
import type { Access, CheckedCall, Tool, ToolContext, ToolOutput } from '../tools/tool.ts'
import { ExtensionFailure } from './extension-failure.ts'
import { readToolOutput } from './handler-results.ts'
import type { HookSession } from '../run/hooks.ts'
import type { LoadedExtension } from './loaded-extension.ts'
import type { Offer } from './runner.ts'

const defaultDeadlineMs = 10 * 60 * 1000

type OfferedTool = Offer['tools'][number]

/**
 * Adapts a tool of an extension. A call that is running when the extension is switched off gets a sentence as
 * its result.
 */
export function extensionTool(
  offered: OfferedTool,
  extension: LoadedExtension,
  sessionOf: (id: string) => HookSession | undefined,
): Tool {
  const { name, description, readOnly = false, replay = 'never', deadlineMs = defaultDeadlineMs } = offered
  const { inputSchema, parse } = readToolInput({ name, schema: offered.inputSchema })
  return {
    name,
    description,
    inputSchema,
    readOnly,
    replay,
    deadlineMs,
    check: (given, place): CheckedCall | string => {
      const parsed = parse(given)
      if (typeof parsed === 'string') return parsed
      const { input } = parsed
      try {
        return { access: accessOf(offered, input, place), run: (context) => run(input, context) }
      } catch (error) {
        if (error instanceof ToolProblem) return error.message
        throw error
      }
    },
  }

  async function run(input: Record<string, unknown>, context: ToolContext): Promise<ToolOutput> {
    const { runId, callId, signal, model } = context
    try {
      const output = await extension.invoke(
        { type: 'tool', name, input, runId, callId, ...(model && { model }) },
        {
          // The loop enforces the deadline, and aborts.
          limitMs: Infinity,
          session: sessionOf(context.sessionId),
          signal,
          ask: (question) => context.ask(question),
          observe: (text) => context.observe(text),
        },
      )
      return readToolOutput(output)
    } catch (error) {
      if (!(error instanceof ExtensionFailure)) throw error
      // A tool may throw to report an error.
      if (error.kind !== 'threw') extension.fail(name, error)
      return { content: `${name} failed. ${error.message}`, isError: true }
    }
  }
}

function accessOf(
  { name, readOnly = false, access }: OfferedTool,
  input: Record<string, unknown>,
  place: { cwd: string },
): Access[] {
  if (!access) return [{ type: 'tool', name, readOnly }]
  return access.flatMap(({ type, input: member }): Access[] => {
    const value = input[member]
    if (value === undefined) return []
    if (typeof value !== 'string')
      throw new ToolProblem(`The input of ${name} is not valid: ${member} must be a string.`)
    switch (type) {
      case 'read':
        return [{ type, path: realPathOf(value, place), isRecursive: true }]
      case 'write':
        return [{ type, path: realPathOf(value, place) }]
      case 'fetch':
        return [{ type, url: value }]
      case 'command':
        return [{ type, command: value, cwd: place.cwd }]
      default:
        return type satisfies never
    }
  })
}
