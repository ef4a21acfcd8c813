import { keyTable } from '../app/key-actions.ts'
import { slashTable } from './slash-table.ts'

/** `docs/reference/slash-commands.md`. A test compares the file with this; `vitest -u` updates it. */
export function slashPage(): string {
  return (
    [
      '# Slash commands and keys',
      'This page is generated from the tables of the chat, like `/help`. A session adds commands from [prompts, skills](../guides/skills-and-templates.md) ' +
        'and [extensions](../guides/extensions.md). The [terminal guide](../guides/terminal.md) explains them.',
      '## Commands',
      table([
        ['Command', 'Meaning'],
        ...slashTable.map((row): Row => [`/${row.name}${'argument' in row ? ` ${row.argument}` : ''}`, row.says]),
      ]),
      '## Keys',
      table([['Key', 'Meaning'], ...keyTable.map(({ label, says }): Row => [label, says])]),
      '',
    ]
      .join('\n\n')
      .trimEnd() + '\n'
  )
}

type Row = [name: string, says: string]

function table([head, ...rows]: Row[]): string {
  const cells = [head ?? ['', ''], ...rows.map(([name, says]): Row => [`\`${name.replaceAll('|', '\\|')}\``, says])]
  const widths = [0, 1].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[], fill: string): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0, fill)).join(' | ')} |`
  const [titles = ['', ''], ...others] = cells
  return [line(titles, ' '), line(['', ''], '-'), ...others.map((row) => line(row, ' '))].join('\n')
}
