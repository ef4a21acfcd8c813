import { join } from 'node:path'
import { z } from 'zod'
import { descriptionOf } from './description.ts'
import { judgedPath, pathSchema, realPathOf, shownPath } from '../files/paths.ts'
import { limitOutput } from '../output-limit.ts'
import { compileGlob } from '../search/glob.ts'
import { argumentSchema, nameArguments, ripgrep } from '../search/ripgrep.ts'
import { openSearchPlace } from '../files/held-folder.ts'
import { defineTool, type ToolContext, type ToolOutput } from '../tool.ts'
import { answerProblems, ToolProblem } from '../tool-problem.ts'

const defaultLimit = 200
const maxLimit = 5000

const schema = z.object({
  pattern: argumentSchema.describe('A glob, such as `*.ts`, `src/**/*.test.ts` or `**/{config,settings}.*`.'),
  path: pathSchema.optional().describe('The folder to search; default: the working folder.'),
  limit: z
    .int()
    .min(1)
    .max(maxLimit)
    .optional()
    .describe(`The maximum number of files to list; default ${defaultLimit}.`),
})

type FindInput = z.output<typeof schema>

export const findTool = defineTool({
  name: 'find',
  description: descriptionOf('find'),
  schema,
  readOnly: true,
  replay: 'safe',
  access: ({ path = '.' }, place) => [{ type: 'read', path: realPathOf(path, place) }],
  run: (input, context, judged) => answerProblems(() => find(judgedPath(judged, 'read'), input, context)),
})

async function find(path: string, input: FindInput, context: ToolContext): Promise<ToolOutput> {
  const { pattern, limit = defaultLimit } = input
  await using place = await openSearchPlace(path, context)
  if (place.type === 'file') throw new ToolProblem(`${shownPath(path, context)} is a file; find searches a folder.`)
  const glob = compileGlob(pattern)
  const found: string[] = []
  let hasMore = false
  let rest = ''
  const { complaints } = await ripgrep({
    arguments: ['--files', ...nameArguments(glob.names), '--', './'],
    workingFolder: place.folder.workingFolder,
    signal: context.signal,
    take: (text) => {
      const names = (rest + text).split('\0')
      rest = names.pop() ?? ''
      for (const name of names.map((each) => each.slice('./'.length))) {
        if (!glob.matches(name)) continue
        hasMore = found.length === limit
        if (hasMore) return false
        found.push(name)
      }
      return true
    },
  })
  const parts = found.map((name) => shownPath(join(path, name), context))
  if (found.length === 0) parts.push('No files match.')
  if (hasMore) parts.push(`[Stopped after ${limit} files. Narrow the pattern, or raise the limit.]`)
  if (complaints) parts.push(`[Some files could not be searched: ${complaints}]`)
  return { content: await limitOutput(parts.join('\n'), context) }
}
