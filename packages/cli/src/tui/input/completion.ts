import type { AutocompleteItem, AutocompleteProvider, AutocompleteSuggestions } from '@earendil-works/pi-tui'
import { harmlessLine } from '../../text/harmless.ts'

export interface CompletionOptions {
  /** Paths that match the text after `@`. */
  files: (query: string) => Promise<string[]>
  /** Names without the slash. */
  commands: () => readonly { name: string; description: string }[]
}

const maxOffered = 50

/** Completes files after `@`, and commands after a `/` that begins the message. */
export class Completion implements AutocompleteProvider {
  readonly #options: CompletionOptions

  constructor(options: CompletionOptions) {
    this.#options = options
  }

  async getSuggestions(
    lines: string[],
    cursorLine: number,
    cursorColumn: number,
    { signal }: { signal: AbortSignal },
  ): Promise<AutocompleteSuggestions | null> {
    const before = (lines[cursorLine] ?? '').slice(0, cursorColumn)
    const command = cursorLine === 0 ? /^\/[^\s/]*$/.exec(before)?.[0] : undefined
    if (command !== undefined) return this.#commandsFor(command)
    const file = fileBehindAt(before)
    return file === undefined ? null : this.#filesFor(file, signal)
  }

  applyCompletion(
    lines: string[],
    cursorLine: number,
    cursorColumn: number,
    item: AutocompleteItem,
    prefix: string,
  ): { lines: string[]; cursorLine: number; cursorCol: number } {
    const line = lines[cursorLine] ?? ''
    const start = cursorColumn - prefix.length
    // A folder is an intermediate step: typing continues after it.
    const inserted = item.value.endsWith('/') ? item.value : `${item.value} `
    const changed = line.slice(0, start) + inserted + line.slice(cursorColumn).replace(/^ /, '')
    return { lines: lines.with(cursorLine, changed), cursorLine, cursorCol: start + inserted.length }
  }

  shouldTriggerFileCompletion(lines: string[], cursorLine: number, cursorColumn: number): boolean {
    return fileBehindAt((lines[cursorLine] ?? '').slice(0, cursorColumn)) !== undefined
  }

  #commandsFor(prefix: string): AutocompleteSuggestions | null {
    const items = this.#options
      .commands()
      .filter(({ name }) => `/${name}`.startsWith(prefix))
      .map(({ name, description }) => ({
        value: `/${name}`,
        label: `/${harmlessLine(name)}`,
        description: harmlessLine(description),
      }))
    return items.length === 0 ? null : { items, prefix }
  }

  async #filesFor(prefix: string, signal: AbortSignal): Promise<AutocompleteSuggestions | null> {
    const paths = await this.#options.files(prefix.slice(1)).catch(() => [])
    if (signal.aborted) return null
    // A name that cannot be displayed as it is cannot be typed either.
    const typeable = paths.filter((path) => harmlessLine(path) === path).slice(0, maxOffered)
    const items = typeable.map((path) => ({ value: /\s/.test(path) ? `@"${path}"` : `@${path}`, label: path }))
    return items.length === 0 ? null : { items, prefix }
  }
}

function fileBehindAt(before: string): string | undefined {
  return /(?:^|\s)(@[^\s"]*)$/.exec(before)?.[1]
}
