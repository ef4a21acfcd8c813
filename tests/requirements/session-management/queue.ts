import type { Requirement } from '../requirement.ts'

/** The message queue: storage, delivery, configuration and notifications. */
export const queue = [
  {
    id: 'session-management/queue while-busy',
    says: 'Users can queue messages while the agent works.',
    lines: { 'Message Queue System': ['40443d54'] },
  },
  {
    id: 'session-management/queue delivered',
    says: 'The session delivers the next queued message when the agent is idle.',
    lines: { 'Message Queue System': ['2609ec03'], 'Queue Processing Flow': ['efe69c16'] },
  },
  {
    id: 'session-management/queue fire-and-forget',
    says: 'Users can queue several messages without waiting for answers.',
    lines: { Overview: ['240e1765'] },
  },
  {
    id: 'session-management/queue follow-up',
    says: 'Users can add context during a run.',
    lines: { Overview: ['1b1d7e53'] },
  },
  {
    id: 'session-management/queue tasks',
    says: 'Users can queue tasks that run one after another.',
    lines: { Overview: ['5f802e38'] },
  },
  {
    id: 'session-management/queue automation',
    says: 'Programs can submit work through the queue.',
    lines: { Overview: ['eea3743a'] },
  },
  {
    id: 'session-management/queue one-session',
    says: 'Each session has its own queue.',
    lines: { 'Queue Package (`internal/session/queue.go`)': ['d51f9151'] },
  },
  {
    id: 'session-management/queue fifo',
    says: 'The queue is first in, first out, safe for concurrent callers and atomic on disk.',
    lines: { 'Queue Package (`internal/session/queue.go`)': ['c9cabd8a'], 'Key Types': ['4e9c661a'] },
  },
  {
    id: 'session-management/queue message-type',
    says: 'A queued message is a message that awaits delivery.',
    lines: { 'Key Types': ['79408051'] },
  },
  {
    id: 'session-management/queue empty',
    says: 'Taking from an empty queue is an error.',
    lines: { 'Error Values': ['2f3fd8a4'] },
    settled: 'A `SessionError` with the code `queue-empty`.',
  },
  {
    id: 'session-management/queue not-found',
    says: 'Reading or removing an unknown message is an error.',
    lines: { 'Error Values': ['5ce3386a'] },
    settled: 'A `SessionError` with the code `message-not-found`.',
  },
  {
    id: 'session-management/queue example-add',
    says: 'A caller gets the queue of a session and adds a message with a client id.',
    lines: { 'Usage Example': ['fb3bc6fa', 'b7ff58c7'] },
  },
  {
    id: 'session-management/queue example-pop',
    says: 'A caller takes the next message or learns that the queue is empty.',
    lines: { 'Usage Example': ['da1eea17', 'a6574fba', 'd38dc3ca'] },
  },
  {
    id: 'session-management/id format',
    says: 'Message ids consist of `q`, a Unix timestamp and random hex digits.',
    lines: { 'Message ID Format': ['d6b52fc7', '3ccff257'] },
  },
  {
    id: 'session-management/id unique',
    says: 'Message ids do not collide.',
    lines: { 'Message ID Format': ['cc17611b'] },
  },
  {
    id: 'session-management/id sortable',
    says: 'Message ids sort by the time of queueing.',
    lines: { 'Message ID Format': ['7d57babe'] },
    settled: 'The timestamp has seconds; within a second, the log defines the order.',
  },
  {
    id: 'session-management/id readable',
    says: 'People can read the time from a message id.',
    lines: { 'Message ID Format': ['4182a9fa'] },
  },
  {
    id: 'session-management/queue concurrent',
    says: 'Concurrent callers can use the queue safely.',
    lines: { 'Thread Safety': ['8743e9f2', 'a34b20e7', 'b555524b'] },
    settled: 'The log writer orders appends; callers need no lock.',
  },
  {
    id: 'session-management/queue atomic',
    says: 'Queue writes are atomic and survive a crash.',
    lines: { 'Thread Safety': ['09ef5ed6'], 'Queue Storage': ['ec707dc6'] },
    settled: 'Queued messages are records in the log; `queue.json` is a copy.',
  },
  {
    id: 'session-management/storage places',
    says: 'A session folder contains the event log, the metadata and the queue.',
    lines: { 'Queue Storage': ['2539bd67', 'fe647c41', 'e65fc58e', '8b7b6c57', 'ed7addc7'] },
  },
  {
    id: 'session-management/storage format',
    says: 'The queue file lists messages with id, text, images, time and client id.',
    lines: { 'Queue Storage': ['4b3b16d3', 'e28824c0', '94ea1c86', 'be44fa50', '7dea689f', '100a2095', '4b51a918'] },
  },
  {
    id: 'session-management/storage separate',
    says: 'Queue state has a file of its own, apart from the event log.',
    lines: { 'Queue Storage': ['e28d51f9'] },
    settled: 'Queued messages are records in the log; `queue.json` is a copy.',
  },
  {
    id: 'session-management/storage transient',
    says: 'Delivered messages leave the queue.',
    lines: { 'Queue Storage': ['c3a4a949'] },
    settled: 'Queued messages are records in the log; `queue.json` is a copy.',
  },
  {
    id: 'session-management/storage append-only',
    says: 'The event log is append-only, and clearing the queue keeps the history.',
    lines: { 'Queue Storage': ['8eb66b6f', '82823328'] },
    settled: 'Queued messages are records in the log; `queue.json` is a copy.',
  },
  {
    id: 'session-management/storage no-limit',
    says: 'The queue has no size limit.',
    lines: { 'Queue Storage': ['d0613853'] },
  },
  {
    id: 'session-management/rest list',
    says: '`GET` on the queue returns its messages and their count.',
    lines: { 'Queue REST API Endpoints': ['aa0826f2', '69020b89', '307e742e', '8b79f7ef', '36181655'] },
  },
  {
    id: 'session-management/rest add',
    says: '`POST` on the queue adds a message and returns 201 with the message.',
    lines: {
      'Queue REST API Endpoints': ['395f0bf0', '092ceaac', '00b18a99', '19522c00', 'e28824c0', '94ea1c86', '61e97b6d'],
    },
  },
  {
    id: 'session-management/rest get',
    says: '`GET` on a queued message returns it.',
    lines: { 'Queue REST API Endpoints': ['559da347'] },
  },
  {
    id: 'session-management/rest delete',
    says: '`DELETE` on a queued message removes it.',
    lines: { 'Queue REST API Endpoints': ['439c6727'] },
  },
  {
    id: 'session-management/rest clear',
    says: '`DELETE` on the queue removes all messages.',
    lines: { 'Queue REST API Endpoints': ['79b3cf59'] },
  },
  {
    id: 'session-management/flow add',
    says: 'A `POST` adds a message to the queue and answers with its id.',
    lines: { 'Queue Processing Flow': ['a9559b26', '7575663b', '6bbf032c', '433d391d'] },
  },
  {
    id: 'session-management/flow added',
    says: 'Clients receive `queue_updated` with the action `added`.',
    lines: { 'Queue Processing Flow': ['aabb817f', 'ab8548e7'] },
  },
  {
    id: 'session-management/flow next',
    says: 'The session takes the next message when the prompt is finished.',
    lines: { 'Queue Processing Flow': ['433c6af3', '95d45511', '40fa9beb', '1a99fe7f'] },
    settled: 'The line that delivers the message also removes it from the queue.',
  },
  {
    id: 'session-management/flow sending',
    says: 'Clients receive `queue_message_sending` before delivery.',
    lines: { 'Queue Processing Flow': ['c19aa8b8'] },
  },
  {
    id: 'session-management/flow delay',
    says: 'The session waits for the configured delay before it delivers.',
    lines: { 'Queue Processing Flow': ['55d6e988', 'f3089897'] },
  },
  {
    id: 'session-management/flow removed',
    says: 'Clients receive `queue_updated` with the action `removed`.',
    lines: { 'Queue Processing Flow': ['4dd1144f'] },
  },
  {
    id: 'session-management/flow prompt',
    says: 'The agent receives the queued message as a prompt.',
    lines: { 'Queue Processing Flow': ['804eb7e3'] },
  },
  {
    id: 'session-management/flow sent',
    says: 'Clients receive `queue_message_sent` after delivery.',
    lines: { 'Queue Processing Flow': ['eddae79f'] },
  },
  {
    id: 'session-management/config place',
    says: 'Settings for the queue are in the `conversations` section.',
    lines: { 'Queue Configuration': ['7d4f0cc3', 'f0cf7237', 'e8543d66'] },
  },
  {
    id: 'session-management/config enabled',
    says: 'The setting `enabled` controls automatic delivery and is on by default.',
    lines: { 'Queue Configuration': ['1452e055'] },
  },
  {
    id: 'session-management/config delay',
    says: 'The setting `delay_seconds` delays delivery and is 0 by default.',
    lines: { 'Queue Configuration': ['9c39bbb2'] },
  },
  {
    id: 'session-management/notice transport',
    says: 'Connected WebSocket clients receive queue notifications at once.',
    lines: { 'WebSocket Notifications': ['63cd1dc1'] },
  },
  {
    id: 'session-management/notice updated',
    says: '`queue_updated` carries the queue length, the action and the message id.',
    lines: { 'WebSocket Notifications': ['6361145d'] },
  },
  {
    id: 'session-management/notice sending',
    says: '`queue_message_sending` carries the message id.',
    lines: { 'WebSocket Notifications': ['eb5fc2f3'] },
  },
  {
    id: 'session-management/notice sent',
    says: '`queue_message_sent` carries the message id.',
    lines: { 'WebSocket Notifications': ['ffc68ae4'] },
  },
  {
    id: 'session-management/store queue',
    says: 'The store gives access to the queue of a session.',
    lines: { 'Store Integration': ['cc990def', '08bb5033'] },
  },
  {
    id: 'session-management/store instances',
    says: 'Queue objects for one session share its storage and allow concurrent use.',
    lines: { 'Store Integration': ['29a68e4d', '5fdeaccf', '7fc690d1'] },
  },
] as const satisfies readonly Requirement[]
