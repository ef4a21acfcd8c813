// A page in a browser that uses the client.
import { indexedDbStorage, RemoteSession, RemoteSessions } from '@tapetree/client'
import { emptyTranscript } from '@tapetree/session/view'

Object.assign(globalThis, { used: [indexedDbStorage, RemoteSession, RemoteSessions, emptyTranscript] })
