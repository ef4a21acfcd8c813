import { changedFiles } from '@tapetree/session/screen'
import type { ToolCallPart, Transcript } from '@tapetree/session/view'
import { callArgument, contentText } from '../../text/content-text.ts'
import { jobNewsOf } from './call-lines.ts'
import type { ItemContext, JobNews } from './item-context.ts'
import type { SessionWork } from './sidebar.ts'

/** The files that the loaded part of a session changed, the last first, and the commands that it started in the background. */
export class SessionWorkFeed {
  readonly #context: ItemContext
  /** Of each call that changed a file. A call with its result does not change any more. */
  readonly #changes = new WeakMap<ToolCallPart, { path: string; added: number; removed: number }>()
  #known: { items: Transcript['path']['items']; files: SessionWork['files']; jobs: readonly ToolCallPart[] } | undefined

  constructor({ theme, jobNews }: Pick<ItemContext, 'theme'> & { jobNews?: ItemContext['jobNews'] }) {
    this.#context = { theme, ...(jobNews && { jobNews }) }
  }

  of({ path: { items } }: Transcript): SessionWork {
    if (this.#known?.items !== items) this.#known = { items, ...this.#read(items) }
    const jobs = this.#known.jobs.flatMap((call) => {
      const news = jobNewsOf(call, this.#context)
      return news ? [{ command: callArgument(call), state: news.state, isRunning: news.isRunning }] : []
    })
    return {
      files: this.#known.files,
      jobs: jobs.toSorted((one, other) => Number(other.isRunning) - Number(one.isRunning)),
    }
  }

  #read(items: Transcript['path']['items']): { files: SessionWork['files']; jobs: ToolCallPart[] } {
    const files = new Map<string, { path: string; added: number; removed: number }>()
    const jobs: ToolCallPart[] = []
    for (let index = 0; index < items.length; index++) {
      const item = items.at(index)
      if (item?.type !== 'assistant') continue
      for (const part of item.parts) {
        if (part.type !== 'tool_call' || !part.result || part.result.isError) continue
        if (part.name === 'bash') jobs.push(part)
        if (part.name !== 'edit' && part.name !== 'write') continue
        const { path, added, removed } = this.#changeOf(part)
        const before = files.get(path)
        files.delete(path)
        files.set(path, { path, added: added + (before?.added ?? 0), removed: removed + (before?.removed ?? 0) })
      }
    }
    return {
      files: [...files.values()].toReversed(),
      jobs: jobs.filter((call) => jobNewsOf(call, { ...this.#context, jobNews: anyJob })),
    }
  }

  #changeOf(call: ToolCallPart): { path: string; added: number; removed: number } {
    let change = this.#changes.get(call)
    if (!change) {
      change = { path: String(call.input['path']), added: 0, removed: 0 }
      for (const { hunks } of changedFiles(call.input, contentText(call.result?.content ?? ''))) {
        for (const { type } of hunks.flatMap(({ lines }) => lines)) if (type !== 'context') change[type]++
      }
      this.#changes.set(call, change)
    }
    return change
  }
}

const anyJob = (): JobNews => ({ state: '', isRunning: false, text: undefined })
