import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import type { ServerProcess } from './server-process.ts'

/** A server that has this command passes requests to TypeScript's own server, which is older than the protocol. */
export const tsserverCommand = 'typescript.tsserverRequest'

const place = z.object({ line: z.int().positive(), offset: z.int().positive() })
const answerSchema = z.object({
  body: z.array(
    z.object({ start: place, text: z.string(), code: z.number().optional(), category: z.string().optional() }),
  ),
})

const severities: Partial<Record<string, number>> = { error: 1, warning: 2 }
const hint = 4

/**
 * What TypeScript 6 and older find in a file that is open, as diagnostics of the protocol. What their server publishes is no answer: it
 * begins with the syntax, says nothing if a text is as good as the one before, and never which text it means.
 */
export async function askTsserver(process: ServerProcess, path: string): Promise<object[]> {
  const ask = async (command: string): Promise<object[]> => {
    const file = pathToFileURL(path).href
    const answer = await process.request('workspace/executeCommand', {
      command: tsserverCommand,
      arguments: [command, { file }],
    })
    return answerSchema.parse(answer).body.map(({ start, text, code, category = 'error' }) => ({
      range: { start: { line: start.line - 1, character: start.offset - 1 } },
      severity: severities[category] ?? hint,
      code,
      source: 'typescript',
      message: text,
    }))
  }
  return (await Promise.all([ask('syntacticDiagnosticsSync'), ask('semanticDiagnosticsSync')])).flat()
}
