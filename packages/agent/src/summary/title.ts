import type { Session } from '@tapetree/session'
import type { Model } from '../models/model.ts'
import { promptFile } from '../prompt/prompt-file.ts'
import { summarize } from './summarize.ts'

export interface TitleInput {
  session: Session
  /** The first prompt of the user. */
  prompt: string
  /** A small model is enough. If undefined, the beginning of the prompt is the title. */
  model: Model | undefined
  signal: AbortSignal
}

const longestTitle = 60
const shownPrompt = 2000

/** Names a session that has no name. Never fails: a title is not worth it. */
export async function nameSession(input: TitleInput): Promise<void> {
  const { session } = input
  if (session.name !== '' || input.prompt.trim() === '') return
  const title = await titleBy(input).catch(() => '')
  // It may have been named or closed meanwhile.
  if (session.name !== '' || input.signal.aborted) return
  await session.appendSessionInfo(title === '' ? firstWords(input.prompt) : title).catch(() => undefined)
}

async function titleBy({ model, prompt, session, signal }: TitleInput): Promise<string> {
  if (!model) return ''
  const system = promptFile('title')
  const said = await summarize({ model, system, prompt: prompt.slice(0, shownPrompt), maxOutputTokens: 200, signal })
  const { text, usage, reference } = said
  if (usage) {
    const { provider, id } = model
    const request = { ...reference, leafId: null }
    await session.append(
      { type: 'usage', usage: { purpose: 'title', provider, model: id, tokens: usage } },
      { request },
    )
  }
  return cleaned(text)
}

function cleaned(text: string): string {
  const line = text.split('\n').find((each) => each.trim() !== '') ?? ''
  return firstWords(line.replace(/^["'#*\s]+|["'*.\s]+$/g, ''))
}

/** One line, cut at a word. */
function firstWords(prompt: string): string {
  const line = prompt.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  if (line.length <= longestTitle) return line
  const cut = line.slice(0, longestTitle)
  const space = cut.lastIndexOf(' ')
  return `${cut.slice(0, space > longestTitle / 2 ? space : longestTitle)}…`
}
