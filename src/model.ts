// The words of Tidemark: ids, positions, who is asking, what a log holds and what a hint says.
// Types and pure functions only; every folder may import it.

declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: Name };

/** The application's own user id: text, 1 to 64 characters. */
export type UserId = Branded<string, 'UserId'>;
/** A conversation's id: a UUID made by the server. */
export type ConvId = Branded<string, 'ConvId'>;
/** One installation slot of a user: 1 to 64 of [A-Za-z0-9_-]. */
export type DeviceId = Branded<string, 'DeviceId'>;
/** A position in a conversation's log: 1, 2, 3 … dense; 0 is "before the first". */
export type Seq = number;

export type ConvType = 'DIRECT' | 'GROUP' | 'CHANNEL';
export type JoinPolicy = 'OPEN' | 'APPROVAL' | 'INVITE';
export type DeliveryMode = 'PUSH' | 'PULL';
export type Role = 'OWNER' | 'ADMIN' | 'MEMBER';
export type EventKind = 'MESSAGE' | 'MEMBERSHIP' | 'RECALL' | 'NOTICE' | 'CALL';
export type EventVia = 'DEVICE' | 'SERVICE' | 'USER';

/** A device of a user, as its credential says. */
export interface DeviceViewer {
  readonly kind: 'device';
  readonly user: UserId;
  readonly device: DeviceId;
  readonly installEpoch: number;
}
/** A user without a device: the service key acting for one (`x-tidemark-user`). */
export interface UserViewer {
  readonly kind: 'user';
  readonly user: UserId;
  readonly via: 'SERVICE' | 'USER';
}
/** The application's own server: the service key by itself. */
export interface ServiceViewer {
  readonly kind: 'service';
}
export type PersonViewer = DeviceViewer | UserViewer;
export type Viewer = PersonViewer | ServiceViewer;

export const deviceOf = (viewer: Viewer): DeviceViewer | null => (viewer.kind === 'device' ? viewer : null);

/** How an event came: from a device, from the service key, or from a user without a device. */
export const viaOf = (viewer: Viewer): EventVia =>
  viewer.kind === 'device' ? 'DEVICE' : viewer.kind === 'user' ? viewer.via : 'SERVICE';

export interface User {
  readonly id: UserId;
  readonly name: string | null;
  readonly avatarUrl: string | null;
}

export interface Device {
  readonly id: DeviceId;
  readonly user: UserId;
  readonly name: string | null;
  readonly installEpoch: number;
  readonly lastSeenAt: Date | null;
}

/** A conversation as one viewer sees it; every number is of one snapshot (U3). */
export interface Conv {
  readonly id: ConvId;
  readonly type: ConvType;
  readonly title: string | null;
  readonly peer: UserId | null;
  readonly joinPolicy: JoinPolicy;
  readonly historyVisible: boolean;
  readonly mode: DeliveryMode;
  readonly infoVersion: number;
  readonly epoch: number;
  readonly head: Seq;
  readonly minSeq: Seq;
  readonly delivered: Seq;
  readonly read: Seq;
  readonly unread: number;
  readonly joined: boolean;
  readonly muted: boolean;
  readonly role: Role | null;
  readonly notice: string | null;
  readonly avatarUrl: string | null;
  /** only owner and admins may send */
  readonly allMuted: boolean;
  /** nobody may send */
  readonly banned: boolean;
  /** the viewer may not send until then */
  readonly silencedUntil: Date | null;
  readonly nickname: string | null;
  /** server time of the viewer's last visible event, of the creation before the first one */
  readonly activeAt: Date;
}

export interface Member {
  readonly user: UserId;
  readonly role: Role;
  readonly nickname: string | null;
  readonly silencedUntil: Date | null;
}

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

/** One entry of a log. A recalled one has no content, quote or mentions (L5). */
export interface LogEvent {
  readonly conv: ConvId;
  readonly seq: Seq;
  readonly kind: EventKind;
  readonly contentType: string;
  readonly sender: UserId | null;
  readonly createdAt: Date;
  readonly via: EventVia;
  readonly clientId: string | null;
  readonly content: JsonObject | null;
  readonly quote: Seq | null;
  readonly mentions: readonly UserId[];
  readonly target: Seq | null;
  readonly recalled: boolean;
  /** of the recall event, if the viewer may see that one */
  readonly recalledBy: Seq | null;
}

/** How the user holds another; a tombstone when it is not active (C1). */
export interface Contact {
  readonly peer: UserId;
  readonly active: boolean;
  readonly since: Date;
  readonly remark: string | null;
  readonly muted: boolean;
  readonly pinned: boolean;
  /** the user has blocked the peer */
  readonly blocked: boolean;
}

export type RequestState = 'PENDING' | 'ACCEPTED' | 'REFUSED' | 'WITHDRAWN';
export interface ContactRequest {
  readonly from: UserId;
  readonly to: UserId;
  readonly state: RequestState;
  readonly text: string | null;
  readonly requestedAt: Date;
  readonly handledAt: Date | null;
}

/** Somebody who wants to be, or to add, a member of a group, as one viewer is shown it. */
export interface JoinRequest {
  readonly conv: ConvId;
  readonly user: UserId;
  /** the ordinary member who wanted to add them; null: they asked themselves */
  readonly inviter: UserId | null;
  readonly handler: UserId | null;
  readonly state: RequestState;
  readonly text: string | null;
  readonly requestedAt: Date;
  readonly handledAt: Date | null;
  /** false: the viewer handled such requests and does no longer; nothing of it may be shown */
  readonly shown: boolean;
}

export interface Badge {
  readonly user: UserId;
  readonly unread: number;
  readonly mutedUnread: number;
  readonly convs: number;
  /** names the snapshot that the numbers are of; opaque to clients */
  readonly asOf: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly hasPrevious: boolean;
  readonly hasNext: boolean;
}

/** Why a subscriber must query again. */
export type ResyncReason = 'START' | 'BUS' | 'OVERFLOW' | 'MODE' | 'RESTORED' | 'VERSION';
export interface Resync {
  readonly kind: 'resync';
  readonly reason: ResyncReason;
}

interface HintOrigin {
  readonly conv: ConvId;
  readonly conversationType: ConvType;
  readonly originDevice: DeviceId | null;
  /** the number of the change of the receiver's own state that this tells of, so that a lost one is missed (H5); internal */
  readonly change: number | null;
}
/** "The log rose to seq": ids and numbers only, never a body (H1). */
export interface MessageHint extends HintOrigin {
  readonly kind: 'message';
  readonly head: Seq;
  readonly seq: Seq;
  readonly eventKind: EventKind;
  readonly contentType: string;
  readonly sender: UserId | null;
  readonly target: Seq | null;
}
/** "The read position rose": what the user's other devices need for their badge (R4). */
export interface ReadHint extends HintOrigin {
  readonly kind: 'read';
  readonly read: Seq;
  readonly unread: number;
  readonly head: Seq;
}
/** "Something else of this conversation changed for you": settings, a new conversation (H9). */
export interface ConvHint extends HintOrigin {
  readonly kind: 'conv';
  readonly contentType: string;
}
/** Which row of the user's own state it is: how they hold another, a contact request, a request to join. */
export type ChangeAbout =
  | { readonly type: 'contact'; readonly peer: UserId }
  | { readonly type: 'contactRequest'; readonly from: UserId; readonly to: UserId }
  | { readonly type: 'joinRequest'; readonly conv: ConvId; readonly user: UserId };
/** "A contact or a request of yours changed" (C1): where it is found, by `changes` too. */
export interface ChangeHint {
  readonly kind: 'change';
  readonly conversationType: 'NONE';
  readonly contentType: string;
  readonly about: ChangeAbout;
  /** the number of this change */
  readonly change: number;
  readonly originDevice: DeviceId | null;
}
/** Something of this moment, kept nowhere: it is told to who is online, or to nobody. */
export interface SignalHint {
  readonly kind: 'signal';
  /** null: of no conversation, to everybody */
  readonly conv: ConvId | null;
  readonly conversationType: ConvType | 'NONE';
  readonly contentType: string;
  readonly sender: UserId | null;
  readonly originDevice: DeviceId | null;
  /** milliseconds since 1970, of the node where it was sent */
  readonly sentAt: number;
  readonly content: JsonObject | null;
}
/** Control, never shown to a client: the sockets of this device below this epoch must close (I4). */
export interface DeviceHint {
  readonly kind: 'device';
  readonly device: DeviceId;
  /** sockets that presented a smaller epoch are closed */
  readonly installEpoch: number;
  readonly reason: 'REVOKED' | 'STALE_INSTALL';
}
/** Control, never shown to a client: which conversations' channels this user needs may have changed (H7). */
export interface ModeHint {
  readonly kind: 'mode';
  readonly conv: ConvId;
}
/** What a client may be told. */
export type Hint = MessageHint | ReadHint | ConvHint | ChangeHint | SignalHint;
/** What travels on the bus. */
export type BusHint = Hint | DeviceHint | ModeHint;
/** Whether this is news for a client, not for the node that it is connected to. */
export const isForClients = (hint: BusHint): hint is Hint => hint.kind !== 'device' && hint.kind !== 'mode';
