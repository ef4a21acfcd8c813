import { hasColour } from '../../command-line/colour.ts'
import type { Io } from '../../command-line/io.ts'
import { ok, warning, type Check } from './check.ts'

/** Whether the chat can be shown well here. */
export function terminalChecks({ stdout, env }: Pick<Io, 'stdout' | 'env'>): Check[] {
  if (stdout.isTTY !== true) return [ok('terminal', 'The output is no terminal here: nothing to check.')]
  const { columns = 0, rows = 0 } = stdout
  const size = `It has ${columns} columns and ${rows} rows`
  return [
    columns < 60 || rows < 16
      ? warning('terminal', `${size}, which is little for the chat.`, 'Make the window larger.')
      : ok('terminal', `${size}.`),
    ok(
      'colour',
      hasColour(stdout, env) ? `There are colours (${env['TERM'] ?? ''}).` : 'There are no colours, as asked for.',
    ),
    hasUnicode(env)
      ? ok('unicode', 'Its text is Unicode.')
      : warning('unicode', 'Its text may not be Unicode.', 'export LANG=C.UTF-8'),
  ]
}

function hasUnicode(env: Io['env']): boolean {
  if (process.platform === 'win32') return true
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || ''
  return /utf-?8/i.test(locale) || (locale === '' && process.platform === 'darwin')
}
