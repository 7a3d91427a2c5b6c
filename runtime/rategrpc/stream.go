package rategrpc

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/rategen/rategen/runtime/raterpc"
)

func stream(server *raterpc.Server) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, call := server.Begin(ss.Context(), info.FullMethod, caller{ss.Context()})
		defer call.End(ctx)
		s := &serverStream{
			ServerStream: ss, ctx: ctx, call: call,
			receives: call.Charges(raterpc.OnReceive), sends: call.Charges(raterpc.OnSend),
		}
		err := call.Charge(ctx, raterpc.OnOpen, nil)
		if err == nil {
			err = handler(srv, s)
		}
		sent := s.sent.Load()
		if err == nil {
			call.Ended(ctx, uint32(codes.OK))
			s.setFields() // nothing was sent
			return nil
		}
		if sent {
			return answer(ctx, call, err, nil)
		}
		return answer(ctx, call, err, ss.SetTrailer)
	}
}

// A serverStream charges the messages of a stream, and adds the fields to its
// headers.
type serverStream struct {
	grpc.ServerStream
	ctx             context.Context
	call            *raterpc.Call
	receives, sends bool        // limits charge messages
	sent            atomic.Bool // the headers
}

func (s *serverStream) Context() context.Context { return s.ctx }

// setFields adds the fields to the headers, unless these were sent.
func (s *serverStream) setFields() {
	if s.sent.Swap(true) {
		return
	}
	if md := fields(s.call); md != nil {
		_ = s.ServerStream.SetHeader(md) // too late if they were sent without this stream
	}
}

func (s *serverStream) SendHeader(md metadata.MD) error {
	s.setFields()
	return s.ServerStream.SendHeader(md)
}

func (s *serverStream) SendMsg(m any) error {
	if s.sends {
		if err := s.call.Charge(s.ctx, raterpc.OnSend, m); err != nil {
			return err
		}
	}
	s.setFields()
	return s.ServerStream.SendMsg(m)
}

func (s *serverStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil || !s.receives {
		return err
	}
	return s.call.Charge(s.ctx, raterpc.OnReceive, m)
}
