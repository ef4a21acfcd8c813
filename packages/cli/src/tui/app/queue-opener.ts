import type { QueueOperation } from '@tapetree/client'
import { QueuePanel } from '../panels/queue-panel.ts'
import type { OpenerContext } from './panel-place.ts'
import { queueOf } from './queue-state.ts'

export async function openQueuePanel({
  session,
  actions,
  remarks,
  appearance,
  open,
  close,
}: OpenerContext): Promise<void> {
  const { handle } = session
  if (!handle) return remarks.warn('There is no session yet.')
  const change = <Op extends QueueOperation>(op: Op, args: Parameters<typeof handle.changeQueue<Op>>[1]): void => {
    void actions.attempt('Changing the queue', () => handle.changeQueue(op, args))
  }
  const panel = new QueuePanel({
    theme: appearance.theme,
    queue: queueOf(handle),
    fullText: (id) => handle.transcript.waiting.find((message) => message.id === id)?.message,
    onEdit: (id, message) => change('queue.edit', { id, message }),
    onMove: (id, beforeId) => change('queue.move', { id, beforeId }),
    onHold: (id) => change('queue.hold', id === undefined ? { reason: 'held by you' } : { id }),
    onRelease: (id) => change('queue.release', id === undefined ? {} : { id }),
    onRemove: (id) => change('queue.remove', { id }),
    onPaste: ({ message, imageIds, delivery }) => change('queue.add', { message, imageIds, delivery }),
    onDelivery: (id, delivery) => change('queue.edit', { id, delivery }),
    onClose: close,
  })
  open(panel, { follow: () => panel.update(queueOf(handle)) })
}
