import type { Io } from '../command-line/io.ts'
import { printJson } from '../command-line/print-json.ts'
import type { RunResult } from './run-result.ts'
import type { RunPrinter } from './run-printer.ts'

/** One object at the end, about the last prompt. */
export class JsonPrinter implements RunPrinter {
  readonly #stdout: Io['stdout']
  #last: RunResult | undefined

  constructor(stdout: Io['stdout']) {
    this.#stdout = stdout
  }

  async print(): Promise<void> {}

  async answered(result: RunResult): Promise<void> {
    this.#last = result
  }

  async end(): Promise<void> {
    if (this.#last) await printJson({ stdout: this.#stdout }, this.#last)
  }
}
