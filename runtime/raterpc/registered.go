package raterpc

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// registered returns the methods of all services whose descriptors the program has: those that
// generated code registers before main.
func registered() (all []Method) {
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		services := file.Services()
		for i := range services.Len() {
			all = append(all, methodsOf(services.Get(i))...)
		}
		return true
	})
	return all
}

func methodsOf(service protoreflect.ServiceDescriptor) (methods []Method) {
	declared := service.Methods()
	for i := range declared.Len() {
		m := declared.Get(i)
		methods = append(methods, Method{"/" + string(service.FullName()) + "/" + string(m.Name()), m.IsStreamingServer()})
	}
	return methods
}

// lacks reports whether a pattern names a method that a service has not, whose descriptor the program
// has, and returns what was meant, if that is known.
func lacks(pattern string) (meantBy string, yes bool) {
	service, method, _ := splitMethod(pattern)
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	descriptor, ok := found.(protoreflect.ServiceDescriptor)
	if err != nil || !ok || method == "*" || descriptor.Methods().ByName(protoreflect.Name(method)) != nil {
		return "", false
	}
	return meant(methodsOf(descriptor), pattern), true
}

// checkServices tells of limits for services that the program has not, where it has one that is spelt
// alike. It is called once, with the first call.
func (s *Server) checkServices() {
	if len(s.limited) == 0 {
		return
	}
	all := registered()
	for _, by := range s.limited {
		for _, l := range by.limits {
			if !slices.ContainsFunc(all, func(m Method) bool { return fits(l.Method, m.Name) }) {
				if meantBy := meant(all, l.Method); meantBy != "" {
					s.policies.ReportUnmet(l.Rule.Name, l.Method+meantBy)
				}
			}
		}
	}
}
