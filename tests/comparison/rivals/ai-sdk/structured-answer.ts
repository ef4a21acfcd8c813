import { anthropic } from '@ai-sdk/anthropic'
import { isStepCount, Output, streamText, tool, type ModelMessage } from 'ai'
import { writeFile } from 'node:fs/promises'
import { z } from 'zod'

const weather = tool({
  description: 'Tell the weather in a city.',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => (await fetch(`${process.env['LAB_URL']}/weather/${city}`)).text(),
})
const schema = z.object({ city: z.string(), celsius: z.number() })
const settings = {
  model: anthropic('claude-sonnet-5'),
  tools: { weather },
  output: Output.object({ schema }),
  stopWhen: isStepCount(10),
}
const messages: ModelMessage[] = [{ role: 'user', content: 'How warm is Oslo?' }]
const save = () => writeFile(`${process.env['FOLDER']}/messages.json`, JSON.stringify(messages))
const stop = new AbortController()
const started = streamText({
  ...settings,
  messages,
  abortSignal: stop.signal,
  onAbort: async ({ steps }) => {
    messages.push(...steps.flatMap(({ response }) => response.messages))
    await save()
  },
})
for await (const part of started.stream) if (part.type === 'text-delta') stop.abort()
messages.push({ role: 'user', content: 'Continue.' })
const continued = streamText({ ...settings, messages })
const object = await continued.output
messages.push(...(await continued.responseMessages))
await save()
console.log(JSON.stringify(object))
