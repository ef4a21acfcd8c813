import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { editText } from '../files/edit-text.ts'
import { changeFile, maxHeldBytes, previewChange, type FileBefore, type FileChange } from '../files/file-change.ts'
import { missingProblem } from '../files/missing-path.ts'
import { limitOutput } from '../output-limit.ts'
import { judgedPath, pathSchema, realPathOf, shownPath } from '../files/paths.ts'
import { decodeTextFile, encodeTextFile } from '../files/text-file.ts'
import { defineTool, type ToolContext, type ToolOutput } from '../tool.ts'
import { answerProblems, hasCode, problemOf, ToolProblem } from '../tool-problem.ts'
import { unifiedDiff } from '../files/unified-diff.ts'

const schema = z.object({
  path: pathSchema.describe('The file to change.'),
  oldText: z
    .string()
    .min(1, { error: 'oldText is empty. To create a file use write.' })
    .describe('The text to replace, exactly as it is in the file.'),
  newText: z.string().describe('The text to put in its place.'),
  replaceAll: z.boolean().optional().describe('Replace every place where oldText is found, not just one.'),
})

type EditInput = z.output<typeof schema>

export const editTool = defineTool({
  name: 'edit',
  description: descriptionOf('edit'),
  schema,
  replay: 'never',
  // The result shows parts of the file.
  access: ({ path }, place) => {
    const real = realPathOf(path, place)
    return [
      { type: 'read', path: real },
      { type: 'write', path: real },
    ]
  },
  preflight: (input, context, judged) => {
    const path = judgedPath(judged, 'write')
    const preview = (): Promise<void> => previewChange(changeOf(path, input, context), context)
    return problemOf(() => explainingMissing(path, context, preview))
  },
  run: (input, context, judged) => answerProblems(() => edit(judgedPath(judged, 'write'), input, context)),
})

async function edit(path: string, input: EditInput, context: ToolContext): Promise<ToolOutput> {
  const { before, after } = await explainingMissing(path, context, () =>
    changeFile(changeOf(path, input, context), context),
  )
  const name = shownPath(path, context)
  const { bytes, count } = after
  const diff = await limitOutput(unifiedDiff({ name, before: before?.bytes, after: bytes }), context)
  return { content: `Edited ${name}: ${count === 1 ? '1 replacement' : `${count} replacements`}.\n\n${diff}` }
}

function changeOf(path: string, input: EditInput, context: ToolContext): FileChange<{ bytes: Buffer; count: number }> {
  return {
    given: input.path,
    path,
    isThere: true,
    content: async (file) => {
      if (!file) throw await missingProblem(path, context)
      return editFile(shownPath(path, context), file, input)
    },
  }
}

async function explainingMissing<T>(path: string, context: ToolContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw hasCode(error, 'ENOENT', 'ENOTDIR') ? await missingProblem(path, context) : error
  }
}

function editFile(name: string, before: FileBefore, input: EditInput): { bytes: Buffer; count: number } {
  if (input.oldText === input.newText)
    throw new ToolProblem('oldText and newText are the same, so nothing would change.')
  if (!before.bytes) throw new ToolProblem(`${name} is too large to edit: it has more than ${maxHeldBytes} bytes.`)
  const file = decodeTextFile(before.bytes)
  if (!file) throw new ToolProblem(`${name} is not valid UTF-8 or UTF-16 text, so it cannot be edited as text.`)
  const result = editText(file.text, { ...input, replaceAll: input.replaceAll ?? false })
  if (result.type === 'refused') throw new ToolProblem(`${name} was not changed. ${result.reason}`)
  return { bytes: encodeTextFile({ ...file, text: result.text }), count: result.count }
}
