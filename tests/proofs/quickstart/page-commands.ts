/** A command of the page, and the line that it stands on. */
export interface PageCommand {
  line: number
  command: string
}

/** What stands behind `$` in the `console` blocks of a page, from top to bottom. */
export function pageCommands(page: string): PageCommand[] {
  const commands: PageCommand[] = []
  let isConsole = false
  for (const [index, line] of page.split('\n').entries()) {
    if (line.startsWith('```')) isConsole = !isConsole && line.trim() === '```console'
    else if (isConsole && line.startsWith('$ ')) commands.push({ line: index + 1, command: line.slice(2) })
    else if (isConsole) throw new Error(`Line ${index + 1} of a console block is no command: ${line}`)
  }
  return commands
}
