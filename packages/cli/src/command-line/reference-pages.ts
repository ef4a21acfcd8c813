import type { CommandSpec } from './command.ts'
import { commandName, optionForm, optionText, positionalForm, shownOptions, summaryOf, usageOf } from './help.ts'
import { exitCodeMeanings } from './exit-code.ts'

/** `docs/reference/commands.md`. A test compares the file with this; `vitest -u` updates it. */
export function commandsPage(commands: readonly CommandSpec[]): string {
  return (
    [
      '# Commands',
      'This page is generated from the command table, like `tapetree --help`, `tapetree man` and the shell ' +
        'completions. Results go to standard output, everything else to standard error. [Exit codes](exit-codes.md) ' +
        'have their own page.',
      ...commands.map(sectionOf),
      '',
    ]
      .join('\n\n')
      .trimEnd() + '\n'
  )
}

/** `docs/reference/exit-codes.md`, likewise. */
export function exitCodesPage(): string {
  return (
    [
      '# Exit codes',
      'Every [command](commands.md) ends with one of these codes. A code never changes its meaning.',
      table(['Code', 'Meaning'], Object.entries(exitCodeMeanings)),
      'An error on standard error says what failed, why, and which command to try next. Under `--json` it is one line ' +
        'of JSON:',
      `\`\`\`json\n${exampleError}\n\`\`\``,
    ].join('\n\n') + '\n'
  )
}

const exampleError = `{
  "error": {
    "code": 5,
    "type": "session-not-found",
    "message": "There is no session \\"x\\".",
    "next": ["tapetree sessions list"]
  }
}`

function sectionOf(spec: CommandSpec): string {
  const { description, positionals = [], examples = [] } = spec
  return [
    `## ${commandName(spec)}`,
    `${summaryOf(spec)}.`,
    `\`\`\`text\n${usageOf(spec)}\n\`\`\``,
    ...(description === undefined ? [] : [description]),
    ...(positionals.length === 0
      ? []
      : [
          table(
            ['Argument', 'Meaning'],
            positionals.map((each) => [code(positionalForm(each)), each.description]),
          ),
        ]),
    table(
      ['Option', 'Meaning'],
      shownOptions(spec).map((each) => [code(optionForm(each)), optionText(each)]),
    ),
    ...(examples.length === 0
      ? []
      : [`\`\`\`text\n${examples.map(({ command, says }) => `# ${says}\n${command}`).join('\n')}\n\`\`\``]),
  ].join('\n\n')
}

function table(titles: readonly string[], lines: readonly (readonly string[])[]): string {
  const rows = [titles, ...lines].map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const widths = titles.map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)))
  const lineOf = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [head = [], ...rest] = rows
  return [lineOf(head), `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...rest.map(lineOf)].join('\n')
}

function code(text: string): string {
  return `\`${text}\``
}
