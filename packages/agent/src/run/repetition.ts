import type { ToolUse } from '@tapetree/session'
import type { ToolOutput } from '../tools/tool.ts'
import { RunStopped } from './limits.ts'

const allowedRepeats = 3
const allowedRefusals = 3

/** Notices a model that makes the same call over and over and learns nothing from it. Forgotten when the process ends. */
export class Repetition {
  #last = ''
  #lastResult = ''
  #count = 0
  #refusals = 0

  /** Says why this call is not run again: it was, with the same result, several times in a row. */
  refusal(call: ToolUse): string | undefined {
    if (keyOf(call) !== this.#last || this.#count < allowedRepeats) return undefined
    this.#refusals++
    return (
      `Not run: the same call was made ${this.#count} times in a row, with the same result each time. ` +
      `Do something else, or say what keeps you from going on.`
    )
  }

  /** Takes in the result of a call. */
  answered(call: ToolUse, output: ToolOutput): void {
    if (this.#refusals > 0 && keyOf(call) === this.#last) return
    const result = JSON.stringify(output.content)
    const isRepeat = keyOf(call) === this.#last && result === this.#lastResult
    this.#count = isRepeat ? this.#count + 1 : 1
    if (!isRepeat) this.#refusals = 0
    this.#last = keyOf(call)
    this.#lastResult = result
  }

  /** Throws when refusing has not helped. */
  check(): void {
    if (this.#refusals < allowedRefusals) return
    throw new RunStopped(
      'repeating-calls',
      `The model makes the same call again and again: ${this.#last.slice(0, 200)}`,
    )
  }
}

function keyOf({ name, input }: ToolUse): string {
  return `${name} ${JSON.stringify(input)}`
}
