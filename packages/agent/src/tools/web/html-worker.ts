import { parentPort, workerData } from 'node:worker_threads'
import { htmlMarkdown } from './html-markdown.ts'

const { html, url } = workerData as { html: string; url: string }
parentPort?.postMessage(htmlMarkdown(html, url), [])
