import { setTimeout as wait } from 'node:timers/promises'
import { stylesFor, write, type Styles, type Io } from '../command-line/io.ts'
import { harmless, harmlessLine } from '../text/harmless.ts'
import type { TourNews } from './tour-script.ts'

/** Prints the tour at reading pace. */
export class Storyteller {
  readonly #io: Pick<Io, 'stdout' | 'env' | 'signal'>
  readonly #styles: Styles
  readonly #isFast: boolean
  #chapters = 0
  #isMidLine = false

  constructor(io: Pick<Io, 'stdout' | 'env' | 'signal'>, { isFast }: { isFast: boolean }) {
    this.#io = io
    this.#styles = stylesFor(io.stdout, io.env)
    this.#isFast = isFast
  }

  async chapter(title: string, lines: readonly string[]): Promise<void> {
    this.#chapters++
    await this.#line(`\n${this.#styles.bold(`${this.#chapters}. ${title}`)}`)
    for (const line of lines) await this.#line(this.#styles.dim(harmlessLine(line)))
    await this.#pause(60 * lines.join(' ').length)
  }

  async tell(sentence: string): Promise<void> {
    await this.#line(this.#styles.dim(harmlessLine(sentence)))
    await this.#pause(40 * sentence.length)
  }

  async user(prompt: string): Promise<void> {
    await this.#line(`${this.#styles.cyan('you')}    ${prompt}`)
    await this.#pause(1000)
  }

  /** An action on the agent. */
  async command(command: string): Promise<void> {
    await this.#line(this.#styles.red(`\n  $ ${command}`))
    await this.#pause(2000)
  }

  async news(news: TourNews): Promise<void> {
    const { green, yellow, dim } = this.#styles
    switch (news.type) {
      case 'text':
        await write(this.#io.stdout, `${this.#isMidLine ? '' : `${green('agent')}  `}${harmless(news.text)}`)
        this.#isMidLine = true
        return
      case 'call':
        await this.#line(`${yellow(news.tool.padEnd(5))}  ${harmlessLine(argumentOf(news.input))}`)
        return
      case 'output':
        await this.#line(
          news.text
            .trimEnd()
            .split('\n')
            .map((line) => `       ${dim(harmless(line))}`)
            .join('\n'),
        )
        return
      case 'result':
        await this.#line(`${dim('result')} ${harmless(news.text.trimEnd()).replaceAll('\n', '\n       ')}`)
        return
      case 'session':
        return
      case 'end':
        await this.#line('')
        return
      default:
        news satisfies never
    }
  }

  async #line(text: string): Promise<void> {
    await write(this.#io.stdout, `${this.#isMidLine ? '\n' : ''}${text}\n`)
    this.#isMidLine = false
  }

  async #pause(ms: number): Promise<void> {
    if (!this.#isFast) await wait(Math.min(ms, 9000), undefined, { signal: this.#io.signal })
  }
}

function argumentOf(input: Record<string, unknown>): string {
  const [first = ''] = Object.values(input)
  return typeof first === 'string' ? first : JSON.stringify(first)
}
