import { untilAborted } from '@tapetree/session/util/deadline'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { ToolProblem } from '../tool-problem.ts'

export interface HtmlPage {
  html: string
  url: string
}

const maxMemoryMb = 256

/** Converts on its own thread, because a page can be crafted to take hours; terminated when the signal aborts. */
export async function htmlToMarkdown({ html, url }: HtmlPage, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  const source = new URL(`./html-worker${extname(import.meta.url)}`, import.meta.url)
  const worker = new Worker(source, {
    workerData: { html, url },
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: maxMemoryMb },
  })
  try {
    return await untilAborted(answerOf(worker), signal)
  } finally {
    await worker.terminate()
  }
}

function answerOf(worker: Worker): Promise<string> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', (error) => {
      reject(new ToolProblem('The page is built in a way that cannot be converted to Markdown.', { cause: error }))
    })
  })
}
