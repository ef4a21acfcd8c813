import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { TourNews } from './tour-news.ts'
import type { TourTask } from './tour-process.ts'

/** The agent process, as the tour sees it. */
export interface TourAgent {
  readonly pid: number
  readonly news: AsyncIterable<TourNews>
  /** Like `kill -9`. Resolves when the process is gone. */
  kill(): Promise<void>
}

export function startTourAgent(task: TourTask, env: Readonly<Record<string, string | undefined>>): TourAgent {
  const extension = extname(import.meta.url)
  const program = fileURLToPath(new URL(`./tour-process${extension}`, import.meta.url))
  const flags = extension === '.ts' ? ['-C', '@tapetree/source'] : []
  const child = spawn(process.execPath, [...flags, program, JSON.stringify(task)], {
    env: { PATH: env['PATH'], HOME: env['HOME'], TMPDIR: env['TMPDIR'] },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  return {
    pid: child.pid ?? 0,
    news: readNews(createInterface({ input: child.stdout })),
    kill: async () => {
      child.kill('SIGKILL')
      await closed
    },
  }
}

async function* readNews(lines: AsyncIterable<string>): AsyncGenerator<TourNews> {
  for await (const line of lines) yield JSON.parse(line) as TourNews
}
