import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'

const [url = '', question] = process.argv.slice(2)
const { body } = await fetch(url)
if (question !== undefined) await fetch(url, { method: 'POST', body: question })
for await (const line of createInterface({ input: Readable.fromWeb(body!) }))
  if (line.startsWith('data: ')) console.log(line.slice('data: '.length))
