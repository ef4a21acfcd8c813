import { existsSync } from 'node:fs'
import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { changeFile, previewChange, type FileChange } from '../files/file-change.ts'
import { countLines, limitOutput } from '../output-limit.ts'
import { judgedPath, pathSchema, realPathOf, shownPath } from '../files/paths.ts'
import { defineTool, type Access, type ToolContext, type ToolOutput } from '../tool.ts'
import { answerProblems, problemOf } from '../tool-problem.ts'
import { unifiedDiff } from '../files/text-file.ts'

const schema = z.object({
  path: pathSchema.describe('The file to write.'),
  content: z.string().describe('The complete content of the file.'),
})

export const writeTool = defineTool({
  name: 'write',
  description: descriptionOf('write'),
  schema,
  replay: 'never',
  // The result shows the previous content, so overwriting is also reading.
  access: ({ path }, place) => {
    const real = realPathOf(path, place)
    return existsSync(real)
      ? [
          { type: 'read', path: real },
          { type: 'write', path: real },
        ]
      : [{ type: 'write', path: real }]
  },
  preflight: (input, context, judged) => problemOf(() => previewChange(changeOf(input, judged), context)),
  run: (input, context, judged) => answerProblems(() => write(input, judged, context)),
})

function changeOf(
  { path, content }: z.output<typeof schema>,
  judged: readonly Access[],
): FileChange<{ bytes: Buffer }> {
  return { given: path, path: judgedPath(judged, 'write'), content: () => ({ bytes: Buffer.from(content) }) }
}

async function write(
  input: z.output<typeof schema>,
  judged: readonly Access[],
  context: ToolContext,
): Promise<ToolOutput> {
  const change = changeOf(input, judged)
  const { before, after } = await changeFile(change, context)
  const { bytes } = after
  const name = shownPath(change.path, context)
  const lines = countLines(input.content)
  const size = `${lines} ${lines === 1 ? 'line' : 'lines'}, ${bytes.length} bytes`
  if (!before) return { content: `Created ${name} (${size}).` }
  const wrote = `Wrote ${name} (${size}).`
  if (!judged.some(({ type }) => type === 'read')) return { content: wrote }
  const diff = await limitOutput(unifiedDiff({ name, before: before.bytes, after: bytes }), context)
  return { content: `${wrote}\n\n${diff}` }
}
