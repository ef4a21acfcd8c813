import { z } from 'zod'
import { judgedPath, pathSchema, realPathOf, shownPath } from '../tools/files/paths.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import { diagnosticLines, type EditDiagnostics } from './edit-diagnostics.ts'

const schema = z.object({
  path: pathSchema.optional().describe('The file to check; default: the files that you have read or changed.'),
})

const deadlineMs = 60_000

/** Errors and warnings of the language servers, on demand. */
export function diagnosticsTool(diagnostics: Pick<EditDiagnostics, 'check'>): Tool {
  return defineTool({
    name: 'diagnostics',
    description:
      'Shows errors and warnings of the language server: type errors, unknown names, syntax errors. New errors in files that you ' +
      'change are shown to you without this tool, when you have stopped editing.',
    schema,
    readOnly: true,
    replay: 'safe',
    deadlineMs,
    access: ({ path }, place) => (path === undefined ? [] : [{ type: 'read', path: realPathOf(path, place) }]),
    run: async ({ path }, context, judged) => {
      const file = path === undefined ? undefined : judgedPath(judged, 'read')
      const { found, problems } = await diagnostics.check(file === undefined ? undefined : [file])
      const lines = diagnosticLines(found, context.cwd)
      if (lines.length > 0) return [...lines, ...problems].join('\n')
      if (file !== undefined && !found.has(file))
        return [`There is no language server for ${shownPath(file, context)}, or it does not run.`, ...problems].join(
          '\n',
        )
      if (problems.length > 0) return ['No errors are known, but not every file was checked.', ...problems].join('\n')
      return 'There are no errors and no warnings.'
    },
  })
}
