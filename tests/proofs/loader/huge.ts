import { fork, type ChildProcess } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hugeFiles, writeHugeFile, type HugeFile } from '../../corpus/huge-files.ts'
import { maxTries } from '../../../scripts/figure/tries.ts'
import { memoryLimit } from './memory-limit.ts'
import type { HugeReport, HugeRequest } from './reports.ts'

const maxMsPerMegabyte = 100
/** On a slow or busy machine the limit follows what bare reading costs there. */
const maxTimesBare = 8
const silenceMs = 60_000

/**
 * Opens all large logs in another process, one after the other. What is too slow or takes too much memory is tried again in
 * a fresh one: others use this machine too, and memory is not given back between two files.
 */
export async function openHugeFiles(options: {
  root: string
  size: 'ci' | 'full'
  say: (line: string) => void
}): Promise<{ reports: HugeReport[]; failures: string[] }> {
  const { root, say } = options
  const reports: HugeReport[] = []
  const failures: string[] = []
  let opener = new Opener()
  let limit = await memoryLimit(root)
  for (const file of hugeFiles(options.size)) {
    const request = write(root, file)
    let report = await opener.open(request)
    for (let tries = 1; isTooMuch(report, limit) && tries < maxTries; tries++) {
      say(`${file.name}: ${problemsOf(report, limit).join(', ')}; once more`)
      opener.close()
      limit = await memoryLimit(root)
      opener = new Opener()
      report = await opener.open(request)
    }
    rmSync(join(root, request.sessionId), { recursive: true })
    reports.push(report)
    failures.push(...problemsOf(report, limit).map((problem) => `${file.name}: ${problem}`))
    const memory = `memory up to +${Math.round(report.grownBytes / 1e6)} MB`
    say(`${file.name}: ${Math.round(report.msPerMegabyte)} ms CPU for each MB, ${memory}`)
  }
  opener.close()
  return { reports, failures }
}

class Opener {
  readonly #child: ChildProcess
  readonly #isReady: Promise<unknown>
  #stderr = ''

  constructor() {
    const program = fileURLToPath(new URL('open-huge.ts', import.meta.url))
    this.#child = fork(program, { execArgv: ['-C', '@tapetree/source'], silent: true })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text))
    this.#isReady = this.#answer()
  }

  async open(request: HugeRequest): Promise<HugeReport> {
    await this.#isReady
    const answer = this.#answer()
    if (this.#child.connected) this.#child.send(request)
    const report = await answer
    return typeof report === 'string'
      ? { problems: [report], msPerMegabyte: 0, bareMsPerMegabyte: 0, grownBytes: 0 }
      : report
  }

  close(): void {
    this.#child.kill('SIGKILL')
  }

  /** The next message, or how the process failed. */
  #answer(): Promise<HugeReport | string> {
    return new Promise((resolve) => {
      const watch = setTimeout(() => settle('hangs'), silenceMs)
      const ended = (): void => settle(`crashed: ${this.#stderr.slice(-2000)}`)
      const settle = (answer: HugeReport | string): void => {
        clearTimeout(watch)
        this.#child.off('message', settle).off('close', ended)
        resolve(answer)
      }
      this.#child.on('message', settle).on('close', ended)
    })
  }
}

function write(root: string, file: HugeFile): HugeRequest {
  const sessionId = 'huge'
  mkdirSync(join(root, sessionId))
  return { root, sessionId, megabytes: writeHugeFile(join(root, sessionId, 'events.jsonl'), file) / 1e6 }
}

/** Of time or memory; what is wrong is not tried again. */
function isTooMuch(report: HugeReport, limit: number): boolean {
  return report.problems.length === 0 && problemsOf(report, limit).length > 0
}

function problemsOf(report: HugeReport, maxGrownBytes: number): string[] {
  const { problems, msPerMegabyte, bareMsPerMegabyte, grownBytes } = report
  const maxMs = Math.max(maxMsPerMegabyte, maxTimesBare * bareMsPerMegabyte)
  const cost = `takes ${Math.round(msPerMegabyte)} ms for each MB, bare reading ${Math.round(bareMsPerMegabyte)} ms`
  return [
    ...problems,
    ...(msPerMegabyte > maxMs ? [cost] : []),
    ...(grownBytes > maxGrownBytes
      ? [`takes ${Math.round(grownBytes / 1e6)} MB of memory, allowed ${Math.round(maxGrownBytes / 1e6)} MB`]
      : []),
  ]
}
